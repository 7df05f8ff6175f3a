import assert from 'node:assert/strict';
import { test } from 'node:test';
import { partsOf, PART, readerBy, TAGS, textIn } from '../../../agentctl/interfaces/web/page/js/text/markdown.js';
import { distinct } from '../../../agentctl/interfaces/web/page/js/safe_text.js';
import MarkdownIt from '../../../agentctl/interfaces/web/page/vendor/markdown-it.js';

const read = readerBy(MarkdownIt);
const HOW = { level: 2 };
/** The rules forbid to write it in one. */
const SCRIPT = ['javascript', 'alert(1)'].join(':');
const ASKED = { level: 4, safe: distinct, isWholeShown: true };
/** The elements as tags with their children. */
const shape = (marks) => marks.map((one) => (typeof one === 'string' ? one : [one.tag, ...shape(one.children)]));
const all = (marks) => marks.flatMap((one) => (typeof one === 'string' ? [] : [one, ...all(one.children)]));
const links = (marks) => all(marks).filter(({ tag }) => tag === 'a');
/** What is neither a blank nor a mark of Markdown. */
const words = (text) => text.replace(/[\x00-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f\s]+/g, '');
const random = (seed) => () => {
  seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
  return seed / 2_147_483_648;
};

test('what people write comes out as what it is', () => {
  const source =
    '# A\n\none **b** _i_ ~~s~~ `c`\nnext\n\n- x\n- [ ] y\n- [x] z\n\n3. a\n7. b\n\n' +
      '> q\n\n---\n\n|a|b|\n|-|-:|\n|1|2|\n';
  assert.deepEqual(shape(read(source, HOW)), [
    ['h2', 'A'],
    ['p', 'one ', ['strong', 'b'], ' ', ['em', 'i'], ' ', ['s', 's'], ' ', ['code', 'c'], '\n', 'next'],
    ['ul', ['li', 'x'], ['li', ['span', '☐'], ' y'], ['li', ['span', '☑'], ' z']],
    ['ol', ['li', 'a'], ['li', 'b']],
    ['blockquote', ['p', 'q']],
    ['hr'],
    ['div', ['table', ['thead', ['tr', ['th', 'a'], ['th', 'b']]], ['tbody', ['tr', ['td', '1'], ['td', '2']]]]],
  ]);
  assert.deepEqual(
    all(read('3. a\n7. b', HOW))
      .filter(({ tag }) => tag === 'li')
      .map(({ attributes }) => attributes.value),
    [3, 7],
  );
});

test('code has its language and its colours', () => {
  const [box] = read('```python title="x"\ndef f(): # c\n```', HOW);
  assert.deepEqual(shape([box]), [
    [
      'div',
      ['span', 'python title="x"'],
      ['pre', ['code', ['span', 'def'], ' ', ['span', 'f'], '(): ', ['span', '# c']]],
    ],
  ]);
  assert.deepEqual(textIn(read('~~~\n<b> **x**\n~~~', HOW)), '<b> **x**');
});

test('a heading is at most one level below the one above it', () => {
  const levels = (source, level) =>
    all(read(source, { level }))
      .filter(({ tag }) => /^h\d/.test(tag))
      .map(({ tag }) => tag);
  assert.deepEqual(levels('### a\n\n# b\n\n### c\n\n#### d\n\n## e', 2), ['h2', 'h2', 'h3', 'h4', 'h3']);
  assert.deepEqual(levels('# a\n## b\n### c\n#### d\n##### e', 4), ['h4', 'h5', 'h6', 'h6', 'h6']);
});

test('only pages of the web are links, and each says where it leads', () => {
  const text = (source, how = HOW) => textIn(read(source, how));
  assert.equal(text('[docs](https://a.example/long/path "why")'), 'docs (a.example “why”)');
  assert.equal(text('[docs](https://a.example/p?q=1)', ASKED), 'docs (https://a.example/p?q=1)');
  assert.equal(text('see https://a.example/x.'), 'see https://a.example/x.');
  for (const scheme of [
    SCRIPT,
    'data:text/html,x',
    'file:///etc/passwd',
    '//evil.example',
    'src/a.ts',
    'mailto:a@b.c',
    'vbscript:x',
    'HTTP:x',
    'blob:x',
  ]) {
    const marks = read(`[go](${scheme}) <${scheme}>`, HOW);
    assert.deepEqual(links(marks), [], scheme);
    assert.ok(textIn(marks).includes(scheme), scheme);
  }
  const [one] = links(read('[x](http://a.b)', HOW));
  assert.deepEqual(one.attributes, { href: 'http://a.b/', target: '_blank', rel: 'noreferrer noopener' });
});

test('an address that leads elsewhere than it seems to says so', () => {
  const text = (source) => textIn(read(source, HOW));
  assert.equal(text('<https://github.com@evil.example/>'), 'https://github.com@evil.example/ (evil.example)');
  assert.equal(text('[https://github.com](https://evil.example)'), 'https://github.com (evil.example)');
  assert.equal(text('[x](https://gіthub.com/)'), 'x (xn--gthub-n2e.com)');
});

test('markup, pictures and definitions are texts', () => {
  const marks = read(
    '<script>a</script>\n\n<b onclick=x>b</b> ![an image](http://i.example/p.png "t")\n\n' +
      '[r]: http://r.example "s"\n\n[c][r]',
    HOW,
  );
  assert.ok(all(marks).every(({ tag }) => TAGS.has(tag)));
  assert.equal(
    textIn(marks),
    '<script>a</script><b onclick=x>b</b> picture: an image (i.example “t”)[r]: http://r.example "s"[c][r]',
  );
});

test('what nobody would see is spelled out, however it is written', () => {
  const bad = '\u202egnp.exe \x1b[31m\x00 &#x202e; &#8203; a\u200bb';
  assert.doesNotMatch(textIn(read(bad, HOW)), /[\x00-\x08\x0b-\x1f\u202a-\u202e]/);
  const asked = textIn(read(`${bad} \`x\u200by\` [a\u200b](http://b.example/\u200b)`, ASKED));
  assert.doesNotMatch(asked, /[\x00-\x08\x0b-\x1f\u202a-\u202e\u200b]/);
  assert.match(asked, /a\\u200bb/);
});

test('a table with more cells than its head leaves none of them out', () => {
  assert.equal(textIn(read('|a|\n|-|\n|b|rm -rf /|', HOW)), '|a|\n|-|\n|b|rm -rf /|');
});

test('parts of a long text: no block of code is cut, and all of it is there', () => {
  const source = `${'words\n\n'.repeat(PART / 7)}\`\`\`sh\n${'line\n\n'.repeat(2000)}\`\`\`\nend\n`;
  const parts = partsOf(source);
  assert.equal(parts.join(''), source);
  assert.equal(parts.filter((part) => part.includes('```')).length, 1);
  const endless = partsOf(`\`\`\`py\n${'def a\n'.repeat(50_000)}`);
  assert.ok(endless.length > 3 && endless.every((part) => part.startsWith('```py\n') && part.length <= 5 * PART));
  assert.equal(partsOf('x'.repeat(10 * PART)).join(''), 'x'.repeat(10 * PART));
  assert.deepEqual(partsOf(''), ['']);
});

test('of a text that still grows only the end changes', () => {
  const source =
    '# A\n\nSome **bold** and `code` words.\n\n- one\n- two\n\n' +
      '```py\ndef f():\n  pass\n```\n\n|a|b|\n|-|-|\n|1|2|\n\nEnd.\n';
  const whole = read(source, HOW).map((one) => JSON.stringify(one));
  for (let end = 0; end <= source.length; end += 1) {
    const found = read(source.slice(0, end), HOW).map((one) => JSON.stringify(one));
    for (const [at, one] of found.slice(0, -1).entries()) assert.equal(one, whole[at], `${end}`);
  }
});

const PIECES = [
  '[',
  ']',
  '(',
  ')',
  '![',
  '](',
  '*',
  '**',
  '_',
  '__',
  '~~',
  '`',
  '```',
  '~~~',
  '> ',
  '- ',
  '+ ',
  '1. ',
  '12) ',
  '# ',
  '###### ',
  '\n',
  '\n\n',
  '    ',
  '\t',
  '|',
  '|-|',
  '|:-:|\n',
  '---',
  '===',
  '<',
  '>',
  '<!--',
  '-->',
  '<script>',
  '</b>',
  '&lt;',
  '&#x202e;',
  '&nbsp;',
  '\\',
  '\\\n',
  '  \n',
  '!',
  ':',
  'http://a.b/c',
  'https://',
  SCRIPT,
  '<http://x.y>',
  '[a]: b',
  '[^1]',
  'a@b.c',
  '"',
  "'",
  'é',
  '中',
  '🚀',
  '\u202e',
  '\u200b',
  '\x1b[0m',
  '\0',
  '[ ] ',
  '[x] ',
  'word',
  'x',
  '1',
  ' ',
  '$',
  '{{x}}',
  'www.a.b',
  '\r',
  '\r\n',
  '\ud800',
  '::',
  'py\n',
  'constructor',
  '__proto__',
];

test('whatever is written: known elements, links to the web alone, and no word is left out', () => {
  const next = random(7);
  for (let round = 0; round < 1000; round += 1) {
    let source = '';
    for (let left = next() * 60; left > 0; left -= 1)
      source += PIECES[Math.floor(next() * PIECES.length)].repeat(next() < 0.1 ? 1 + next() * 9 : 1);
    for (const how of [HOW, ASKED]) {
      const marks = read(source, how);
      for (const { tag, attributes } of all(marks)) {
        assert.ok(TAGS.has(tag), tag);
        assert.deepEqual(
          Object.keys(attributes).filter(
            (name) => !['class', 'href', 'target', 'rel', 'value', 'role', 'tabindex', 'aria-label'].includes(name),
          ),
          [],
        );
        if (tag === 'a') assert.match(attributes.href, /^https?:\/\//);
        else assert.ok(!('href' in attributes));
      }
      assert.doesNotMatch(textIn(marks), /[\x00-\x08\x0b-\x1f\u202a-\u202e]/, JSON.stringify(source));
      if (how === ASKED) assertTold(source, textIn(marks));
    }
  }
});

/** Each word of the source is in the text, in its order; but for entities, and the signs of tasks and of lists. */
function assertTold(source, text) {
  const plain = distinct(source.replace(/\r\n/g, '\n'))
    .replace(/&(?:lt|#x202e|nbsp);/g, '')
    .replace(/\[[xX]\]/g, '')
    .replace(/\d+[.)]/g, '');
  const told = words(text);
  let at = 0;
  for (const one of words(plain)) {
    at = told.indexOf(one, at) + 1;
    assert.ok(at, JSON.stringify([source, text, one]));
  }
}

const HOSTILE = {
  brackets: '[',
  open: '[a](',
  angle: '[a](<b',
  images: '![a](',
  stars: '*a ',
  strong: '**x* ',
  under: 'a_',
  mixed: '*a_ ',
  tildes: '~~a ',
  ticks: 'a``',
  quotes: '>',
  lines: '> a\n>> b\n',
  lists: '- ',
  pipes: '|',
  rows: '|a|b\n',
  fences: '```\na\n',
  tags: '<a ',
  comments: '<!--',
  entities: '&a',
  definitions: '[a]: b\n',
  uses: '[a][b]\n',
  mails: 'a@',
  urls: 'http://a.b ',
  schemes: 'http://',
  bare: '<http://a',
  headings: '# a #\n',
  under2: 'a\n=\n',
  blanks: '\t',
  empty: '\n',
  tasks: '- [ ] a\n',
  titles: '[a](b "',
  emphasis: 'a**b*c ',
  zero: '\0',
  escapes: '\\',
  deep: '> - ',
};

/** Of the processor alone: other programs do not count. */
const time = (work) => {
  let best = Infinity;
  for (let round = 0; round < 2; round += 1) {
    const begin = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(begin);
    best = Math.min(best, (user + system) / 1000);
  }
  return best;
};

test('a paragraph may have more pieces than a call takes arguments', () => {
  assert.equal(textIn(read('*a '.repeat(100_000), HOW)).length, 299_999);
});

test('the time grows as the text does', () => {
  const kinds = Object.entries(HOSTILE).map(([name, unit]) => [name, (size) => unit.repeat(size / unit.length)]);
  kinds.push([
    'nested',
    (size) => Array.from({ length: Math.sqrt(size) }, (_, at) => `${' '.repeat(2 * at)}- a\n`).join(''),
  ]);
  kinds.push(['lazy', (size) => `${'> '.repeat(size / 4)}a\n${'b\n'.repeat(size / 4)}`]);
  kinds.push(['wide', (size) => `${'|a'.repeat(size / 8)}|\n${'|-'.repeat(size / 8)}|\n${'|b\n'.repeat(size / 8)}`]);
  for (const [name, make] of kinds) {
    const [little, much] = [make(PART / 4), make(2 * PART)];
    const one = time(() => read(little, HOW));
    const more = time(() => read(much, HOW));
    assert.ok(more < 24 * one + 100, `${name}: ${one} ms, and ${more} ms for eight times as much`);
  }
});

test('nothing lies deep in each other, and nothing of it is left out', () => {
  const depth = (marks) =>
    marks.reduce((most, one) => Math.max(most, typeof one === 'string' ? 0 : 1 + depth(one.children)), 0);
  for (const unit of ['> ', '- ', '> - ', '1. ']) {
    const marks = read(`${unit.repeat(60)}word`, HOW);
    assert.ok(depth(marks) < 50, `${unit} ${depth(marks)}`);
    assert.match(textIn(marks), /word/);
  }
});
