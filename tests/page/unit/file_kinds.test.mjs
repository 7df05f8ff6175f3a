// At stake: what a worker calls an image or a text is looked at as what it is, and never run.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { imageType, textOf, viewerOf } from '../../../agentctl/interfaces/web/page/js/text/file_kinds.js';

const bytes = (text) => new TextEncoder().encode(text);

test('an image is known by its first bytes, and a drawing with scripts is not one', () => {
  assert.equal(imageType(new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0])), 'image/png');
  assert.equal(imageType(new Uint8Array([0xff, 0xd8, 0xff, 0xe0])), 'image/jpeg');
  for (const text of ['', '<svg xmlns="http://www.w3.org/2000/svg" onload="x()"/>', '<html>', 'PNG']) {
    assert.equal(imageType(bytes(text)), '');
  }
});

test('a text that is cut within a character is a text, and bytes are not', () => {
  assert.equal(textOf(bytes('größer').slice(0, 3)), 'gr');
  assert.equal(textOf(bytes('a\0b')), null);
  assert.equal(textOf(new Uint8Array([0xff, 0xfe, 0x41])), null);
});

test('the name chooses among the looks of texts', () => {
  const looks = ['a/b.PATCH', 'x.diff', 'r.md', 'r.md.txt', 'md'].map(viewerOf);
  assert.deepEqual(looks, ['diff', 'diff', 'markdown', 'text', 'text']);
});
