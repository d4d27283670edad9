package tools

import (
	"bytes"
	"strings"
)

// needle is a word to search for by its rarest byte, which is what processors do fastest.
type needle struct {
	word       []byte // in lower case if fold
	at         int    // of the rarest byte
	fold       bool   // ASCII's letters in whatever case
	rare, also byte   // the byte, and its other case
}

// common are the bytes that texts consist of, the most frequent first.
const common = " etaoinrslcdupm\tfhg\nbyvw.,()_=\"-:/xk0j1q2z;'*"

func newNeedle(word string, fold bool) *needle {
	n := &needle{word: []byte(word), fold: fold}
	best := -1
	for i := range len(word) {
		rank := strings.IndexByte(common, word[i])
		if rank < 0 {
			rank = len(common)
		}
		if rank > best {
			best, n.at = rank, i
		}
	}
	n.rare = word[n.at]
	n.also = n.rare
	if fold && 'a' <= n.rare && n.rare <= 'z' {
		n.also -= 'a' - 'A'
	}
	return n
}

// index is where the word is first; -1: nowhere.
func (n *needle) index(text []byte) int {
	if n.rare == n.also {
		return n.scan(text, func(from int) int { return bytes.IndexByte(text[from:], n.rare) })
	}
	next := [2]int{-1, -1} // where each case comes next, at or behind from
	return n.scan(text, func(from int) int {
		for i, b := range [2]byte{n.rare, n.also} {
			if next[i] >= from {
				continue
			}
			if next[i] = bytes.IndexByte(text[from:], b); next[i] < 0 {
				next[i] = len(text)
			} else {
				next[i] += from
			}
		}
		if first := min(next[0], next[1]); first < len(text) {
			return first - from
		}
		return -1
	})
}

// scan goes from one rare byte to the next.
func (n *needle) scan(text []byte, rare func(from int) int) int {
	for from := n.at; from < len(text); {
		i := rare(from)
		if i < 0 {
			return -1
		}
		start := from + i - n.at
		if n.here(text[start:]) {
			return start
		}
		from += i + 1
	}
	return -1
}

// here tells whether a text begins with the word.
func (n *needle) here(text []byte) bool {
	if !n.fold {
		return bytes.HasPrefix(text, n.word)
	}
	if len(text) < len(n.word) {
		return false
	}
	for i, w := range n.word {
		c := text[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != w {
			return false
		}
	}
	return true
}
