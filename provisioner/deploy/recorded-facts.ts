/** For tests: what hosts answered to `facts-script.ts`. The second is a GPU server's, put together from its parts' answers. */

export const plainHostFacts = `os-id=debian
os-version=12
os-name=Debian GNU/Linux 12 (bookworm)
kernel=Linux 6.1.0-28-amd64
machine=x86_64
libc=glibc 2.36
systemd=systemd 252 (252.31-1~deb12u1)
booted=systemd
machine-id=3c9e3a52a8dd4f4f9b8b7a1f0c2d4e6f
hostname=ant
cpus=2
memory-kib=25165824
clock=1796000000
disk=/opt/p4 52428800
disk=/var/lib/p4 52428800
address=127.0.0.1
address=198.18.18.11
address=fe80::1
end
`;

export const gpuHostFacts = `os-id=ubuntu
os-version=24.04
os-name=Ubuntu 24.04.3 LTS
kernel=Linux 6.8.0-85-generic
machine=x86_64
libc=glibc 2.39
systemd=systemd 255 (255.4-1ubuntu8.10)
booted=systemd
machine-id=aa9e3a52a8dd4f4f9b8b7a1f0c2d4e6f
hostname=gpu
cpus=64
memory-kib=527896576
clock=1796000001
disk=/opt/p4 900000000
disk=/var/lib/p4 900000000
polkit=/usr/lib/polkit-1/polkitd
stage-unit=p4-stage@0123abcd.0.1.service
nvidia-driver=580.95.05
nvidia-device=present
library=libcuda.so.1
library=libcudart.so.13
library=libcublas.so.13
library=libcublasLt.so.13
gpu=0, 49140, NVIDIA RTX 6000 Ada Generation
gpu=1, 49140, NVIDIA RTX 6000 Ada Generation
end
`;
