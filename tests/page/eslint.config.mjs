// The rules for the scripts of the page. Run by tests/page/scripts.py.
import { createRequire } from 'node:module';

// ESLint lies in the cache, and not beside this file: it is what says where its own rules are.
const js = createRequire(process.argv[1])('@eslint/js');

/** Whatever makes elements or code of a text. What anybody may have written becomes text nodes only (js/safe_text.js). */
const MADE_OF_TEXT = ['innerHTML', 'outerHTML', 'insertAdjacentHTML', 'setHTMLUnsafe', 'createContextualFragment', 'srcdoc'];

export default [
  js.configs.recommended,
  {
    linterOptions: { reportUnusedDisableDirectives: 'error', noInlineConfig: true },
    rules: {
      'no-restricted-properties': ['error', ...MADE_OF_TEXT.map((property) => ({ property })),
        { object: 'document', property: 'write' }, { object: 'document', property: 'writeln' }],
      'no-restricted-globals': ['error', 'DOMParser'],
      // js/dom.js has what these have, with effects that are over with what they are for.
      'no-restricted-imports': ['error', { patterns: [{ regex: 'vendor/(preact|htm)' }] }],
      'no-eval': 'error',
      'no-implied-eval': 'error',
      'no-new-func': 'error',
      'no-script-url': 'error',
      'no-unused-vars': ['error', { args: 'all', argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'prefer-const': 'error',
      'no-var': 'error',
      // A template shows markup as it comes out: a line break in it could be a text node.
      'max-len': ['error', { code: 120, ignoreTemplateLiterals: true, ignoreRegExpLiterals: true }],
      // What the checkers find is mended, not silenced.
      'no-warning-comments': ['error', { terms: ['@ts-ignore', '@ts-expect-error', '@ts-nocheck'], location: 'anywhere' }],
      // The types say it, and know the globals of a browser.
      'no-undef': 'off',
      // Blanks and marks are what js/safe_text.js looks for, by their escapes.
      'no-misleading-character-class': ['error', { allowEscape: true }],
      // Control characters are what js/safe_text.js looks for.
      'no-control-regex': 'off',
    },
  },
  { files: ['**/js/dom.js'], rules: { 'no-restricted-imports': 'off' } },
];
