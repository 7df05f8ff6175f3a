// What the page uses of Preact, which it carries minified: nothing can be read off that.

export interface Drawn { readonly type: unknown }

export function h(type: unknown, props: object | null, ...children: unknown[]): Drawn;
export function render(drawn: Drawn, where: Element): void;
export class Component<Props> {
  readonly props: Props;
  constructor(props: Props);
}
