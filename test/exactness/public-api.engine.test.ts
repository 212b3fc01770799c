/**
 * The second oracle: rings of slices against node-llama-cpp's own public interface on the uncut files. Models without a
 * tokenizer take part with token ids. What the bounds are and where they come from stands in public-api-agreement.ts.
 */
import { test } from 'node:test';

import { openModel } from '../../model/model-file.ts';
import { withEngine } from '../../stage/engine-fixture.ts';
import { assertAgrees } from './public-api-agreement.ts';
import { randomTokens } from './script.ts';
import { smallSubjects, stories } from './subjects.ts';

const opening = 'Once upon a time, there lived a young girl who had a small blue boat and a good friend.';

test("stories: a ring agrees with node-llama-cpp's public interface on the uncut model", async (t) => {
  const prompt = withEngine({}, ({ vocabulary }) =>
    Array.from(vocabulary.tokenize(opening, { addSpecial: true, parseSpecial: false })),
  );
  const { name, path } = stories;
  await assertAgrees(t, { name, path, publicPath: path, prompt, steps: 64, stages: 4 });
});

for (const [index, { name, path }] of (await smallSubjects()).entries()) {
  test(`${name}: a ring agrees with node-llama-cpp's public interface on the uncut model`, async (t) => {
    const prompt = randomTokens(300, 40, (await openModel(path)).vocabularySize);
    const stages = ([2, 3, 4] as const)[index % 3] ?? 2;
    await assertAgrees(t, { name, path, publicPath: path, prompt, steps: 64, stages });
  });
}
