package plaintext

import "unicode/utf8"

// Ends returns what is left of a text when its middle is cut out: at most head and tail bytes, in
// whole characters, and how many bytes lie between them; 0: begin is the whole text.
func Ends(s string, head, tail int) (begin, end string, left int) {
	if len(s) <= head+tail {
		return s, "", 0
	}
	begin, end = WholeRunes(s[:head], s[len(s)-tail:])
	return begin, end, len(s) - len(begin) - len(end)
}

// WholeRunes drops the halves of a character that a cut has left at the end of head and at the
// beginning of tail.
func WholeRunes(head, tail string) (string, string) {
	for len(head) > 0 {
		if r, n := utf8.DecodeLastRuneInString(head); r != utf8.RuneError || n > 1 {
			break
		}
		head = head[:len(head)-1]
	}
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	return head, tail
}
