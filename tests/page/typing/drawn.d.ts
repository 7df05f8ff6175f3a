// What many modules of the page hand to each other.

/** What a template has drawn, or nothing. */
type Asks = object | false;

interface Ref<T> { current: T }

/** An event of something that was drawn: what it hit is an element. */
type On<E extends globalThis.Event = globalThis.Event, T extends Element = HTMLInputElement> =
  E & { readonly target: T; readonly currentTarget: T };

/** What is known of a refusal: of one by the server, by the network, or of a form. */
interface Refused {
  message: string; hint?: string; status?: number; field?: string; name?: string;
  done?: Sent.DoneBefore; links?: { href: string; text: string }[];
}

/** The sign of a state: the glyph, the class that has its colour, and what it means. */
interface StateSign { glyph: string; role: string; words: string }

/** What is fetched, as far as it is there; `error` is that of the last try. */
interface Fetched<T> { data: T | null; error: Refused | null; isLoading: boolean }
