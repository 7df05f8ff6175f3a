// What the page uses of Preact's hooks.

export function useState<T>(first: T | (() => T)): [T, (next: T | ((was: T) => T)) => void];
/** What a template puts into a ref is not checked. */
export function useRef(first: null): { current: any };
export function useRef<T>(first: T): { current: T };
export function useMemo<T>(make: () => T, deps: readonly unknown[]): T;
export function useEffect(effect: () => void | (() => unknown), deps?: readonly unknown[]): void;
export function useLayoutEffect(effect: () => void | (() => unknown), deps?: readonly unknown[]): void;
