/** The state folder a command works with. */
import process from 'node:process';

import { userPath } from './command.ts';
import { stateFolder, type StateFolder } from './state-folder.ts';

/** @param option what `--state` says, relative to the folder the user is in */
export const chosenState = (option: string | undefined): StateFolder =>
  stateFolder({
    option: option === undefined ? null : userPath(option),
    environment: process.env,
    workingFolder: process.cwd(),
  });

/** Whether it is the one of a command in the same folder that is told nothing, by option or by variable. */
export const isDefaultState = ({ root }: StateFolder): boolean =>
  root === stateFolder({ option: null, environment: {}, workingFolder: process.cwd() }).root;

export const stateOptionText = 'where keys, generations and journals are (default: $P4_STATE, else .p4)';
