// What only a terminal helps with: a page that is not let in, a server that is gone, and whom a person trusts. Nothing
// else on the page names a command (tests/lint/test_next_steps.py).

export const PRINTS_LINK = 'In a terminal, agentctl serve --link prints another link.';
export const IS_RUNNING = 'Does agentctl serve still run, in its terminal?';
/** @param {string} of */
export const trusts = (of) => `Look at it, then trust it in a terminal: agentctl trust ${of}`;
/** @param {string} of */
export const takesOver = (of) => `If everything in it is yours, take it over in a terminal: agentctl trust ${of}`;
/** @param {string} of */
export const vouchesFor = (of) => `or read it, and vouch for it in a terminal: agentctl trust ${of}`;
/** Whose variables a queue gets that has lost its own. */
export const VARIABLES_OF = 'agentctl serve';
