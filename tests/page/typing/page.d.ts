// What open.js starts: the page, of which it needs no name.
export {};
