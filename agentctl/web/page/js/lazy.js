// Parts of the page that are fetched when somebody opens them.
import { html, useEffect, useState } from './dom.js';
import { Loading, Problem } from './pieces.js';

/**
 * A component of a module that is not there yet.
 * @param {() => Promise<object>} load
 * @param {string} name what the module calls it
 */
export function lazy(load, name) {
  let found = null;
  return function Lazy(props) {
    const [error, setError] = useState(null);
    const [, draw] = useState(0);
    useEffect(() => {
      if (found) return;
      load().then((module) => {
        found = module[name];
        draw((count) => count + 1);
      }, () => setError({ message: 'this part of the page could not be fetched', hint: 'is `agentctl serve` still running?' }));
    }, []);
    if (found) return html`<${found} ...${props} />`;
    if (error) return html`<${Problem} error=${error} /><p class="pad"><button type="button" onClick=${() => location.reload()}>Load the page again</button></p>`;
    return html`<${Loading} />`;
  };
}
