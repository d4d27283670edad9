package fence

import (
	"strings"
	"unicode"
)

// isPlain reports whether a text has only characters that look like nothing but
// themselves: ASCII, Latin letters with accents, the writing of China, Japan and
// Korea, and the common signs of prose. Other alphabets have look-alikes of Latin
// letters, and the rest of Unicode has whole alphabets of them, and much that cannot
// be seen.
func isPlain(text string) bool {
	for _, r := range text {
		if r >= 0x7F && !isPlainRune(r) || r < ' ' && r != '\n' && r != '\r' && r != '\t' {
			return false
		}
	}
	return true
}

func isPlainRune(r rune) bool {
	switch {
	case r >= 0xC0 && r <= 0x17F, // Latin with accents
		r >= 0x3041 && r <= 0x3096, r >= 0x30A1 && r <= 0x30FC, // kana
		r >= 0x3400 && r <= 0x9FFF, r >= 0xAC00 && r <= 0xD7A3: // Han, Hangul
		return true
	}
	return strings.ContainsRune("\u00a0¡§°±·«»¿–—‘’‚“”„…•‹›€←↑→↓⇒−≈≠≤≥✅✓✔✗✘❌、。「」『』！（），：；？", r)
}

// wild stands, in a folded text, for a character that may stand for any letter.
const wild = '?'

// folded is what a reader sees of a text at a glance: its letters.
type folded struct {
	letters []byte
	at      []int // where they stand in the text
}

// add folds a letter in: small, without its accent, and one for those that are hard to
// tell apart: l for I, m for rn, w for vv.
func (f *folded) add(c byte, at int) {
	last := len(f.letters) - 1
	switch {
	case c == 'i':
		c = 'l'
	case c == 'n' && last >= 0 && f.letters[last] == 'r':
		f.letters[last] = 'm'
		return
	case c == 'v' && last >= 0 && f.letters[last] == 'v':
		f.letters[last] = 'w'
		return
	}
	f.letters, f.at = append(f.letters, c), append(f.at, at)
}

// accents are the letters of U+00C0 to U+017F without their accents.
const accents = "aaaaaaaceeeeiiiidnooooo-ouuuuypb" + "aaaaaaaceeeeiiiidnooooo-ouuuuypy" +
	"aaaaaacccccccc" + "ddddeeeeeeeeee" + "gggggggghhhh" + "iiiiiiiiiiiijjkkk" + "llllllllllnnnnnnnnn" +
	"oooooooorrrrrr" + "sssssssstttttt" + "uuuuuuuuuuuuwwyyyzzzzzzs"

// rune folds a character in. Signs and digits are left out, or, if they are to stand for
// letters, wild; Han and the like, which may do so in a word of ours, always are.
func (f *folded) rune(r rune, at int, signs bool) {
	switch {
	case r >= 'a' && r <= 'z':
		f.add(byte(r), at)
	case r >= 'A' && r <= 'Z':
		f.add(byte(r)+'a'-'A', at)
	case r >= 0xC0 && r <= 0x17F && accents[r-0xC0] != '-':
		f.add(accents[r-0xC0], at)
	case r > 0x7F && unicode.IsLetter(r), signs && (r > 0x7F && r != '\u00a0' || r >= '0' && r <= '9' || r == '$' || r == '@' || r == '|' || r == '!'):
		f.letters, f.at = append(f.letters, wild), append(f.at, at)
	}
}

// letters folds a word of ours.
func letters(s string) string {
	var f folded
	for i, r := range s {
		f.rune(r, i, false)
	}
	return string(f.letters)
}
