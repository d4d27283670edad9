package hostlist

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	longestName  = 253 // characters of a name in the domain name system
	longestLabel = 63
)

var errName = errors.New("it is no name of a host")

// canonical is the form of a name that is compared and dialled.
func canonical(s string) (string, error) {
	if len(s) > 4*longestName || !utf8.ValidString(s) {
		return "", errName
	}
	labels := strings.Split(strings.TrimSuffix(strings.ToLower(s), "."), ".")
	for i, label := range labels {
		var ok bool
		if labels[i], ok = ascii(label); !ok {
			return "", errName
		}
	}
	name := strings.Join(labels, ".")
	if len(name) > longestName || isNumber(labels[len(labels)-1]) {
		return "", errName // some resolvers take 127.1 and 0x7f000001 for addresses
	}
	return name, nil
}

// isNumber reports whether a resolver could take a last label for a part of an address.
func isNumber(label string) bool {
	return label[0] >= '0' && label[0] <= '9' &&
		(strings.HasPrefix(label, "0x") || strings.Trim(label, "0123456789") == "")
}

// ascii encodes a label in lower case, and reports whether it may stand in a name.
func ascii(label string) (string, bool) {
	plain := true
	for _, r := range label {
		switch {
		case r >= utf8.RuneSelf:
			plain = false
			if !unicode.In(r, unicode.L, unicode.M, unicode.Nd) {
				return "", false
			}
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_':
		default:
			return "", false
		}
	}
	if !plain {
		label = "xn--" + punycode([]rune(label))
	}
	return label, label != "" && len(label) <= longestLabel && label[0] != '-' && label[len(label)-1] != '-'
}

// punycode encodes a label as in RFC 3492. It is written out here since golang.org/x/net/idna would
// bring its tables into every program that reads the config; a test compares the two.
func punycode(label []rune) string {
	const base, tMin, tMax, initialBias, initialN = 36, 1, 26, 72, 128
	var out []byte
	for _, r := range label {
		if r < initialN {
			out = append(out, byte(r))
		}
	}
	basic := len(out)
	done := basic
	if basic > 0 {
		out = append(out, '-')
	}
	n, delta, bias := rune(initialN), 0, initialBias
	for ; done < len(label); n, delta = n+1, delta+1 {
		next := rune(unicode.MaxRune)
		for _, r := range label {
			if r >= n {
				next = min(next, r)
			}
		}
		delta += int(next-n) * (done + 1)
		n = next
		for _, r := range label {
			if r < n {
				delta++
			}
			if r != n {
				continue
			}
			q := delta
			for k := base; ; k += base {
				t := min(max(k-bias, tMin), tMax)
				if q < t {
					break
				}
				out = append(out, digit(t+(q-t)%(base-t)))
				q = (q - t) / (base - t)
			}
			out = append(out, digit(q))
			bias = adapt(delta, done+1, done == basic)
			delta = 0
			done++
		}
	}
	return string(out)
}

func digit(d int) byte {
	if d < 26 {
		return byte('a' + d)
	}
	return byte('0' + d - 26)
}

func adapt(delta, points int, first bool) int {
	const base, tMin, tMax, skew, damp = 36, 1, 26, 38, 700
	if first {
		delta /= damp
	} else {
		delta /= 2
	}
	delta += delta / points
	k := 0
	for ; delta > (base-tMin)*tMax/2; k += base {
		delta /= base - tMin
	}
	return k + (base-tMin+1)*delta/(delta+skew)
}
