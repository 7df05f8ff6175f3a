// An option of a question in two lines: what is answered by it, and what that means. Pure.

/**
 * Drivers put what a model says about an option behind its name: `id: about`. Nothing of it is left out here.
 * @param {string} id
 * @param {string} label
 * @returns {[name: string, about: string]} `about` is empty where nothing is said
 */
export function optionWords(id, label) {
  const isSaid = label.startsWith(`${id}: `) && label.length > id.length + 2;
  return isSaid ? [id, label.slice(id.length + 2)] : [label, ''];
}
