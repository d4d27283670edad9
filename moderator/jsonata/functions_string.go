package jsonata

import (
	"math"
	"strings"
)

func (c *call) toString() (any, error) {
	indent := ""
	if pretty, _ := c.args[1].(bool); pretty {
		indent = "  "
	}
	return c.textOf(c.args[0], indent)
}

func (c *call) textOf(v any, indent string) (any, error) {
	text, err := c.text(v, indent)
	if err != nil {
		return nil, err
	}
	return text, nil
}

func (c *call) length() (any, error) {
	return float64(runes(c.textArg(0))), nil
}

// substring counts characters; a negative start counts from the end.
func (c *call) substring() (any, error) {
	text := c.textArg(0)
	length := float64(runes(text))
	start, end := c.num(1, 0), length
	if length+start < 0 {
		start = 0
	}
	if !c.missing(2) {
		n := c.num(2, 0)
		if n <= 0 {
			return "", nil
		}
		end = start + n
		if start < 0 {
			end += length
		}
	}
	return c.made(slice(text, start, end, length))
}

// slice cuts characters out of a text as JavaScript's slice does.
func slice(text string, start, end, length float64) string {
	bound := func(place float64) int {
		place = math.Trunc(place)
		if place < 0 {
			place += length
		}
		if math.IsNaN(place) {
			place = 0
		}
		return int(min(max(place, 0), length))
	}
	from, to := bound(start), bound(end)
	if from >= to {
		return ""
	}
	return text[byteAt(text, from):byteAt(text, to)]
}

// byteAt is the offset of a character.
func byteAt(text string, character int) int {
	for i := range text {
		if character == 0 {
			return i
		}
		character--
	}
	return len(text)
}

func (c *call) substringBefore() (any, error) {
	if c.missing(1) {
		return c.args[0], nil
	}
	before, _, _ := strings.Cut(c.textArg(0), c.textArg(1))
	return c.made(before)
}

func (c *call) substringAfter() (any, error) {
	if c.missing(1) {
		return c.args[0], nil
	}
	_, after, found := strings.Cut(c.textArg(0), c.textArg(1))
	if !found {
		return c.args[0], nil
	}
	return c.made(after)
}

func (c *call) lowercase() (any, error) {
	return c.made(strings.ToLower(c.textArg(0)))
}

func (c *call) uppercase() (any, error) {
	return c.made(strings.ToUpper(c.textArg(0)))
}

// trim also makes every run of white space one space.
func (c *call) trim() (any, error) {
	words := strings.FieldsFunc(c.textArg(0), func(r rune) bool { return strings.ContainsRune(" \t\n\r", r) })
	return c.made(strings.Join(words, " "))
}

// pad fills up to a width: on the right, or on the left if it is negative.
func (c *call) pad() (any, error) {
	text, filler := c.textArg(0), c.textArg(2)
	if filler == "" {
		filler = " "
	}
	width := c.num(1, 0)
	wanted := math.Trunc(math.Abs(width)) - float64(runes(text))
	if !(wanted > 0) {
		return text, nil
	}
	if wanted > float64(c.e.limits.MaxBytes) {
		return nil, c.write(c.e.limits.MaxBytes + 1)
	}
	if err := c.write(int(wanted) + len(text)); err != nil {
		return nil, err
	}
	length := float64(runes(filler))
	padding := strings.Repeat(filler, int(wanted/length)) + slice(filler, 0, math.Mod(wanted, length), length)
	if width < 0 {
		return padding + text, nil
	}
	return text + padding, nil
}

func (c *call) join() (any, error) {
	l, separator := asList(c.args[0]), c.textArg(1)
	pieces := make([]string, l.len())
	size := 0
	for i := range pieces {
		pieces[i], _ = l.item(i).(string)
		size += len(pieces[i]) + len(separator)
		if size > c.e.limits.MaxBytes {
			break // made will say so
		}
	}
	if err := c.write(size); err != nil {
		return nil, err
	}
	return strings.Join(pieces, separator), nil
}
