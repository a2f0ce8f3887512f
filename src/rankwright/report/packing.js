// Packed text: DEFLATE (RFC 1951) in base64, as page.py packs it. Unpacked at once, so that printing need not wait.

/** The text of an element: packed if it says how many bytes it had. */
function textOf({ textContent, dataset }) {
  return dataset.bytes === undefined ? textContent : unpacked(textContent, Number(dataset.bytes));
}

function unpacked(packed, size) {
  const source = Uint8Array.from(atob(packed), (sign) => sign.charCodeAt(0));
  return new TextDecoder().decode(inflated(source, size));
}

const LENGTHS = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258];
const LENGTH_BITS = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
const DISTANCES = [1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097,
  6145, 8193, 12289, 16385, 24577];
const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
const END = 256; // of a block

function inflated(source, size) {
  const target = new Uint8Array(size);
  let [at, to, held, count] = [0, 0, 0, 0];

  const fill = (n) => {
    for (; count < n; count += 8) held |= (source[at++] ?? 0) << count;
  };
  const take = (n) => {
    fill(n);
    const value = held & ((1 << n) - 1);
    held >>>= n;
    count -= n;
    return value;
  };
  const symbol = (code) => {
    fill(15);
    const entry = code[held & (code.length - 1)];
    held >>>= entry & 15;
    count -= entry & 15;
    return entry >> 4;
  };

  const copyStored = () => {
    at -= count >> 3; // whole bytes that were read ahead
    held = 0;
    count = 0;
    const length = source[at] | (source[at + 1] << 8);
    target.set(source.subarray(at + 4, at + 4 + length), to);
    at += 4 + length;
    to += length;
  };

  const readCodes = () => {
    const [literals, distances, given] = [take(5) + 257, take(5) + 1, take(4) + 4];
    const own = new Uint8Array(19);
    for (let k = 0; k < given; k += 1) own[ORDER[k]] = take(3);
    const code = codeOf(own);
    const lengths = new Uint8Array(literals + distances);
    for (let k = 0; k < lengths.length;) {
      const found = symbol(code);
      if (found < 16) lengths[k++] = found;
      else {
        const value = found === 16 ? lengths[k - 1] : 0;
        const times = found === 16 ? take(2) + 3 : found === 17 ? take(3) + 3 : take(7) + 11;
        lengths.fill(value, k, k + times);
        k += times;
      }
    }
    return [codeOf(lengths.subarray(0, literals)), codeOf(lengths.subarray(literals))];
  };

  const readBlock = ([literals, distances]) => {
    for (let found = symbol(literals); found !== END; found = symbol(literals)) {
      if (found < END) target[to++] = found;
      else {
        const length = LENGTHS[found - 257] + take(LENGTH_BITS[found - 257]);
        const far = symbol(distances);
        const from = to - DISTANCES[far] - take(far < 2 ? 0 : (far >> 1) - 1);
        for (let k = 0; k < length; k += 1) target[to + k] = target[from + k];
        to += length;
      }
    }
  };

  for (let last = 0; !last;) {
    last = take(1);
    const kind = take(2);
    if (kind === 0) copyStored();
    else readBlock(kind === 1 ? usualCodes() : readCodes());
  }
  return target;
}

/** A Huffman code as a table: the next bits give a symbol, shifted by four, and how many bits it takes. */
function codeOf(lengths) {
  const most = Math.max(1, ...lengths);
  const table = new Uint16Array(1 << most);
  let code = 0;
  for (let length = 1; length <= most; length += 1, code <<= 1) {
    for (let symbol = 0; symbol < lengths.length; symbol += 1) {
      if (lengths[symbol] !== length) continue;
      for (let place = reversed(code, length); place < table.length; place += 1 << length) table[place] = (symbol << 4) | length;
      code += 1;
    }
  }
  return table;
}

function reversed(code, length) {
  let result = 0;
  for (let bit = 0; bit < length; bit += 1) result |= ((code >> bit) & 1) << (length - 1 - bit);
  return result;
}

function usualCodes() {
  const literals = Uint8Array.from({ length: 288 }, (_, k) => (k < 144 ? 8 : k < 256 ? 9 : k < 280 ? 7 : 8));
  return [codeOf(literals), codeOf(new Uint8Array(30).fill(5))];
}
