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

export const stateOptionText = 'where keys, generations and journals are (default: $P4_STATE, else .p4)';
