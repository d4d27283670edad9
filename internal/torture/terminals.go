package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// own matches the escape sequences that our programs use: they move within or across lines, and set colors.
var own = regexp.MustCompile("\r\x1b\\[K|\x1b\\[(m|1m|2m|31m|32m|33m|J|[0-9]+A)")

// obeyed returns an escape sequence in terminal output that is not ours, or a part that is not text, or "".
func obeyed(shown string) string {
	rest := own.ReplaceAllString(shown, "")
	at := strings.IndexFunc(rest, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) || r >= 0xE0000 && r <= 0xE007F
	})
	if at < 0 && !utf8.ValidString(rest) {
		return strconv.Quote(head(rest))
	}
	if at < 0 {
		return ""
	}
	return strconv.Quote(rest[max(0, at-60):min(len(rest), at+60)])
}

// sequence returns a random escape sequence, unlike any of ours.
func sequence(random *rand.Rand) string {
	list := []string{
		"\x1b]52;c;UFdO\a", "\x1b]0;T\x1b\\", "\x1b[2J\x1b[8m", "\u009b2J", "\u0090q\u009c", "\u009d0;x\u009c", "\x1bc", "\x1b[?1049h", "\x1bP+q544e\x1b\\",
		"\u202e", "\u2066", "\u200f", "\x7f\b\b", "\x0e\x0f", "\x05", "\x1b[6n", "\U000E0041", "a\rb", "\x1b[38;5;1mred", "\x1b[", "\x1b",
	}
	random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return strings.Join(list[:1+random.IntN(len(list))], string(rune('a'+random.IntN(26))))
}

// terminals runs commands on a terminal in a home in which untrusted texts are full of escape sequences:
// tasks, answers, tool results, workflows, file names, errors.
func terminals(ctx context.Context, t *trial, v *victim) error {
	mark := func() string { return sequence(t.random) }
	quoted := func() string { return yamlQuote("x" + mark()) }
	hostile := strings.ReplaceAll(string(pair("hostile", quoted(), ".", ".")), "Two roles, one after the other.", quoted())
	file := v.inProject("x" + strings.ReplaceAll(mark(), "/", "") + ".yaml")
	for path, text := range map[string]string{
		v.inProject(".workflow/hostile.yaml"): hostile, file: hostile + "nokey" + mark(), v.inProject("note"): mark(),
		v.path("fails.sh"): "printf %b " + strconv.Quote(strings.ReplaceAll(fmt.Sprintf("%q", mark()+"\xff"), `"`, "")) + " >&2; exit 3\n",
	} {
		if err := write(path, []byte(text)); err != nil {
			return err
		}
	}
	v.env = append(slices.Clone(v.env), "UWF_PAGER=tee") // a pager that prints everything
	if err := v.says("---\n$status: done\nnote: " + quoted() + "\n---\n" + mark() + "\n\n# " + mark() + "\n"); err != nil {
		return err
	}
	v.calls <- []call{{tool: "read_file", args: map[string]string{"path": "note"}}, {tool: "x" + mark(), args: map[string]string{mark(): mark()}}}
	lines := [][]string{
		{"run", "hostile", "-p", finish + mark(), "--agent", v.agent}, {"thread", "start", "hostile", "-p", finish + mark()}, {"thread", "step", "@", "--agent", "bare"},
		{"thread", "step", "@", "--agent", "sh " + v.path("fails.sh")}, {"thread", "retry", "@", "-p", mark(), "--agent", v.agent},
		{"run", file, "-p", "x"}, {"workflow", "validate", file}, {"thread", "show", "@" + mark()}, {mark()}, {"thread", "list", "--" + mark()},
	}
	readers := [][]string{
		{"thread", "read", "@"}, {"thread", "read", "@", "--start"}, {"thread", "show", "@"}, {"thread", "steps", "@"}, {"thread", "list", "--all"}, {"thread", "diagnose", "@"},
		{"thread", "graph", "@"}, {"step", "read", "@1"}, {"step", "show", "@1"}, {"step", "turns", "@1"}, {"thread", "step-details", "@1"}, {"workflow", "list"}, {"workflow", "show", "hostile"},
		{"workflow", "graph", "hostile"}, {"log", "list"}, {"cas", "fsck"}, {"thread", "diff", "@", "@"},
	}
	for _, r := range readers {
		if t.random.IntN(2) == 0 {
			r = append(slices.Clone(r), "--format", pick(t, "json", "yaml", "text"))
		}
		lines = append(lines, r)
	}
	shown := 0
	for _, line := range lines {
		out, err := v.onTerminal(ctx, line...)
		if err != nil {
			return fmt.Errorf("uwf %q: %w", line, err)
		}
		if bad := obeyed(out); bad != "" {
			return fmt.Errorf("uwf %q: a terminal would obey %s", line, bad)
		}
		shown += strings.Count(out, `\u`)
	}
	if enough := len(lines); shown < enough && onTerminals {
		return fmt.Errorf("%d command lines have shown %d sequences only: nothing is tested", enough, shown)
	}
	return nil
}

func yamlQuote(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r < 0x10000 {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return `"` + b.String() + `"`
}
