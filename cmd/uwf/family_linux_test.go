package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// manyAtWork has a child for each of 200 items, some of them hostile.
const manyAtWork = `
name: many
description: Two hundred.
roles:
  list:
    description: Lists.
    run: [cat, items.json]
    parse: json
    frontmatter: { type: object, properties: { $status: { const: listed }, items: { type: array } }, required: [$status, items] }
  all:
    description: Does all.
    each: { of: meta.items, workflow: ./one.yaml, prompt: "Do it.", vars: { n: "{{item.n}}", word: "{{{item.word}}}" } }
    join: "{ '$status': 'done', 'count': $count(results[status = 'done']) }"
    frontmatter: { type: object, properties: { $status: { const: done }, count: { type: integer } }, required: [$status, count] }
graph:
  $START: { _: list }
  list: { listed: all }
  all: { done: $END }
`

const oneAtWork = `
name: one
description: One of them.
inputs: { n: { schema: { type: integer } }, word: { schema: { type: string } } }
roles:
  work: { description: Works., run: [gate, GATE, "{{$inputs.n}}", "{{{$inputs.word}}}"] }
graph:
  $START: { _: work }
  work: { passed: $END, failed: $END }
`

// TestManyAtWorkFitTheTerminal checks what a user sees of a run with 200 children.
func TestManyAtWorkFitTheTerminal(t *testing.T) {
	t.Parallel()
	const kids, parallel = 200, 30
	dir, home := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	open := func(n int) {
		write("gate.new", strconv.Itoa(n))
		require.NoError(t, os.Rename(filepath.Join(dir, "gate.new"), filepath.Join(dir, "gate")))
	}
	open(0)
	file := filepath.Join(dir, "gate")
	var items []string
	for n := range kids {
		title, word := fmt.Sprintf("Finding %d", n+1), fmt.Sprintf("looking at %d", n+1)
		switch n % 8 {
		case 1:
			title, word = `Evil\u001b[2J\u001b[8m\u202e\u2066 one`, `gone\u001b[3A\u001b]0;T\u0007\u009b2J`
		case 3:
			title, word = "שלום עולם", "مرحبا بالعالم مرحبا بالعالم مرحبا بالعالم"
		case 5:
			title, word = strings.Repeat("日本語", 12), strings.Repeat("幅広い文字", 20)
		case 7:
			title, word = "⌚✅❤️👩‍👩‍👧‍👦", strings.Repeat("✅", 90)
		}
		items = append(items, fmt.Sprintf(`{"title": "%s", "word": "%s", "n": %d}`, title, word, n+1))
	}
	write("items.json", `{"$status": "listed", "items": [`+strings.Join(items, ",")+`]}`)
	write("many.yaml", manyAtWork)
	write("one.yaml", strings.ReplaceAll(oneAtWork, "GATE", file))
	require.NoError(t, os.WriteFile(filepath.Join(home, "config.yaml"), []byte("commands: { sandbox: { mode: none } }\n"), 0o600))

	tty := openPTY(t)
	s := &screen{pty: tty, ended: make(chan error, 1)}
	s.resize(t, 80, 24)
	cmd := exec.Command("uwf", "run", "./many.yaml", "-p", "Go", "--parallel", strconv.Itoa(parallel), "--format", "text")
	cmd.Env = append(os.Environ(), "UWF_HOME="+home, "HOME="+home, "TERM=xterm", "NO_COLOR=1", "GORACE=atexit_sleep_ms=0")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, tty.slave, tty.slave
	require.NoError(t, cmd.Start())
	ended := s.ended // a screen is created for each size
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt) }) // for a test that has failed

	lines := s.until(t, func(at counts) bool { return at.busy == parallel && len(at.named) > 10 })
	first := strings.Join(lines, "\n")
	at := countsOf(lines)
	require.Equal(t, []int{kids, 0, parallel, kids - parallel}, []int{at.of, at.done, at.busy, at.left})
	require.Regexp(t, `Finding (\d+) +\d+s · looking at \d+\n`, first)
	require.Regexp(t, `Evil|日本語|✅|שלום`, first, "what is harmless of them is shown")

	open(100)
	lines = s.until(t, func(at counts) bool { return at.done == 100 && at.busy == parallel && at.left == 70 })
	require.Regexp(t, `Finding 1[0-3]\d +\d+s`, strings.Join(lines, "\n"))

	for _, size := range [][2]int{{40, 24}, {40, 10}, {120, 40}, {80, 24}} {
		s.quiet(t)
		s.resize(t, size[0], size[1])
		lines = s.until(t, func(at counts) bool { return at.busy == parallel })
		require.Equal(t, 1, strings.Count(strings.Join(lines, "\n"), "of 200 done"), "nothing is left of what was drawn before:\n%s", strings.Join(lines, "\n"))
		require.Contains(t, strings.Join(lines, "\n"), "looking at")
	}

	open(kids)
	select {
	case err := <-s.ended:
		require.NoError(t, err)
	case <-time.After(5 * time.Minute):
		require.Fail(t, "it does not end")
	}
	all := tty.text(t)
	requireHarmless(t, all, cmd.Args)
	s.take(t, all)
	require.Regexp(t, `(?s)✓ all → done → \$END .* 200 of 200 done.*count: 200\n✓ thread \w+: completed`, strings.Join(s.lines(), "\n"))
	require.NotRegexp(t, `at work|to come|Finding \d+ `, strings.Join(s.lines(), "\n"), "nothing is left of the lines that counted up")
}

// counts are the numbers in the lines of the tree.
type counts struct {
	of, done, busy, left int
	named                []string // lines of single children
	more                 int
	whole                bool // the line with the counts is complete
}

var (
	counted = regexp.MustCompile(`(\d+) of (\d+) done(?:, (\d+) at work)?(?:, (\d+) to come)?`)
	andMore = regexp.MustCompile(`^  … and (\d+) more at work$`)
)

func countsOf(lines []string) (c counts) {
	number := func(s string) int { n, _ := strconv.Atoi(s); return n }
	for _, line := range lines {
		if m := counted.FindStringSubmatch(line); m != nil && !strings.HasPrefix(line, "✓") {
			c = counts{done: number(m[1]), of: number(m[2]), busy: number(m[3]), left: number(m[4]), whole: !strings.HasSuffix(line, "…")}
		} else if m := andMore.FindStringSubmatch(line); m != nil {
			c.more = number(m[1])
		} else if strings.HasPrefix(line, "    ") {
			c.named = append(c.named, line)
		}
	}
	return c
}

// screen emulates a terminal: it supports the sequences that we use, and rewraps its lines when its size
// changes. Just before the progress lines are redrawn, it holds a complete picture.
type screen struct {
	pty           *pty
	columns, rows int
	cells         [][]rune // all lines, including those scrolled off; 0 follows a wide character
	wrapped       []bool   // whether a line continues in the next one
	row, column   int
	top           int // the first visible line
	fed           int
	ended         chan error // result of the program that writes to it
	stale         bool       // nothing was drawn since its size changed
}

// resize changes the size of the terminal and wraps lines that are too long.
func (s *screen) resize(t *testing.T, columns, rows int) {
	t.Helper()
	require.NoError(t, unix.IoctlSetWinsize(int(s.pty.master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: uint16(rows), Col: uint16(columns)}))
	before := *s
	*s = screen{pty: s.pty, ended: s.ended, columns: columns, rows: rows, fed: s.fed, stale: true}
	at, column, top := 0, 0, 0
	for i, line := range before.cells {
		if i == before.top {
			top = s.row
		}
		for j, r := range line {
			if i == before.row && j == before.column {
				at, column = s.row, s.column
			}
			if r != 0 {
				s.put(r)
			}
		}
		if i == before.row && before.column >= len(line) {
			at, column = s.row, s.column
		}
		if !before.wrapped[i] && i < len(before.cells)-1 {
			s.row, s.column = s.row+1, 0
		}
	}
	s.row, s.column, s.top = at, column, max(top, at-rows+1)
}

// line returns the line with the cursor.
func (s *screen) line() *[]rune {
	for len(s.cells) <= s.row {
		s.cells, s.wrapped = append(s.cells, nil), append(s.wrapped, false)
	}
	s.top = max(s.top, s.row-s.rows+1)
	return &s.cells[s.row]
}

// put writes a character.
func (s *screen) put(r rune) {
	width := widthOf(r)
	if width == 0 {
		return
	}
	if s.column+width > s.columns {
		s.line()
		s.wrapped[s.row] = true
		s.row, s.column = s.row+1, 0
	}
	line := s.line()
	for len(*line) < s.column {
		*line = append(*line, ' ')
	}
	*line = append((*line)[:s.column], append([]rune{r, 0}[:width:width], (*line)[min(len(*line), s.column+width):]...)...)
	s.column += width
}

// widthOf returns the display width of a character, for those in this test.
func widthOf(r rune) int {
	switch {
	case r == '\u200d' || r == '\ufe0f':
		return 0
	case r == '⌚' || r == '✅' || r >= 0x2e80 && r <= 0xff60 && r != 0xfffd || r >= 0x1f300:
		return 2
	}
	return 1
}

var sequence = regexp.MustCompile(`^\x1b\[([0-9]*)([A-Za-z])`)

// take processes the program's output so far.
func (s *screen) take(t *testing.T, all string) (pictures [][]string) {
	t.Helper()
	for s.fed < len(all) {
		rest := all[s.fed:]
		switch rest[0] {
		case '\n':
			s.line()
			s.wrapped[s.row] = false
			s.row, s.column = s.row+1, 0
			s.line()
		case '\r':
			s.column = 0
		case 0x1b:
			m := sequence.FindStringSubmatch(rest)
			if m == nil {
				return pictures // the rest of it is still to come
			}
			n, _ := strconv.Atoi(m[1])
			switch m[2] {
			case "A":
				if !s.stale {
					pictures = append(pictures, s.lines())
					require.LessOrEqual(t, n, s.rows-1, "there are more lines than the terminal has")
				}
				s.row, s.stale = max(s.row-n, s.top), false
			case "K":
				line := s.line()
				*line, s.wrapped[s.row] = (*line)[:min(len(*line), s.column)], false
			case "J":
				line := s.line()
				*line = (*line)[:min(len(*line), s.column)]
				s.cells, s.wrapped = s.cells[:s.row+1], s.wrapped[:s.row+1]
				s.wrapped[s.row] = false
			}
			s.fed += len(m[0]) - 1
		default:
			r := []rune(rest[:min(len(rest), 4)])[0]
			if r == 0xfffd && len(rest) < 4 {
				return pictures
			}
			s.put(r)
			s.fed += len(string(r)) - 1
		}
		s.fed++
	}
	return pictures
}

// lines returns the visible lines.
func (s *screen) lines() []string {
	var lines []string
	for _, line := range s.cells[min(s.top, len(s.cells)):] {
		lines = append(lines, strings.TrimRight(strings.ReplaceAll(string(line), "\x00", ""), " "))
	}
	return lines
}

// until waits for a picture with the wanted counts. The counts of all earlier pictures must be consistent.
func (s *screen) until(t *testing.T, wanted func(counts) bool) []string {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		for _, lines := range s.take(t, s.pty.soFar()) {
			at := countsOf(lines)
			if at.whole {
				require.Equal(t, at.of, at.done+at.busy+at.left, "%s", strings.Join(lines, "\n"))
				require.Equal(t, at.busy, len(at.named)+at.more, "%s", strings.Join(lines, "\n"))
			}
			if wanted(at) {
				return lines
			}
		}
		select {
		case err := <-s.ended:
			require.Fail(t, "it has ended", "%v\n%s", err, s.pty.soFar())
		case <-deadline:
			require.Fail(t, "it is not seen", strings.Join(s.lines(), "\n"))
		case <-s.pty.more:
		}
	}
}

// quiet waits until the lines have been drawn; the next update is most of a second away.
func (s *screen) quiet(t *testing.T) {
	t.Helper()
	<-s.pty.more
	for drawn := false; !drawn; {
		select {
		case <-s.pty.more:
		case <-time.After(300 * time.Millisecond):
			drawn = true
		}
	}
	s.take(t, s.pty.soFar())
}
