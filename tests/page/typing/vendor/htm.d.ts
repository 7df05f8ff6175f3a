import type { Drawn, h } from './preact.js';

/** What may stand in a template. A handler's event and what a component hands down are not checked there. */
type Piece = ((...given: any[]) => unknown) | object | string | number | bigint | boolean | null | undefined;

declare const htm: { bind(draw: typeof h): (strings: TemplateStringsArray, ...pieces: Piece[]) => Drawn };
export default htm;
