package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/cmd/uwf/internal/cli"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/terminal"
)

// TestTerminalObeysNobody runs every command of the reference, which matches the command tree, on a pty, in a
// home in which every text is hostile: only our own escape sequences may be printed. Add the values for new
// arguments here.
func TestTerminalObeysNobody(t *testing.T) {
	h := newHostileHome(t)
	shown := 0
	for _, c := range commandsOf(t) {
		t.Run(strings.Join(c.words, " "), func(t *testing.T) {
			h := h.copy(t)
			for _, line := range c.lines(t) {
				out := h.run(t, line)
				requireHarmless(t, out, line)
				if strings.Contains(out, escapedMark) {
					shown++
				}
			}
			if slices.Contains(c.flags, "--background") { // its worker uses our directory
				h.run(t, []string{"thread", "wait", "@"})
			}
		})
	}
	h = h.copy(t)
	for _, line := range h.more() {
		requireHarmless(t, h.run(t, line), line)
	}
	require.Greater(t, shown, 60, "the walk is worth something only if hostile texts are shown")
}

// TestTerminalJSONIsTheSameValue checks that JSON on a terminal and in a pipe differ only in formatting.
func TestTerminalJSONIsTheSameValue(t *testing.T) {
	h := newHostileHome(t)
	for _, line := range []string{"thread show @", "thread steps @", "step show @-1", "workflow show hostile", "step turns @"} {
		words := append(strings.Fields(line), "--format", "json")
		tty := openPTY(t)
		h.on(t, tty.terminal(), io.Discard, nil, words)
		var piped bytes.Buffer
		h.on(t, &piped, io.Discard, nil, words)
		require.Equal(t, values(t, piped.String()), values(t, tty.text(t)), line)
		require.NotEqual(t, piped.String(), plainASCII(piped.String()), "%s: a pipe keeps its bytes", line)
	}
}

// TestPager checks that only output taller than the terminal goes through the pager.
func TestPager(t *testing.T) {
	h := newHostileHome(t)
	for _, c := range []struct {
		line, pager, last string
		paged             bool
	}{
		{"thread read @", "sed s/^/paged:/", "PAGER=false", true},
		{"thread read @", "", "PAGER=sed s/^/paged:/", true},
		{"thread read @", "cat", "PAGER=sed s/^/paged:/", false},
		{"thread read @", "sed s/^/paged:/", "TERM=dumb", false},
		{"workflow list", "sed s/^/paged:/", "", false}, // short
	} {
		asked := *h
		asked.environ = append(slices.Clone(h.environ), "UWF_PAGER="+c.pager, c.last)
		out := asked.run(t, strings.Fields(c.line))
		require.NotEmpty(t, out)
		require.Equal(t, c.paged, strings.HasPrefix(out, "paged:"), "%+v\n%s", c, out)
	}
	h.environ = append(h.environ, "UWF_PAGER=/no/such/pager")
	require.NotEmpty(t, h.run(t, []string{"thread", "read", "@"}), "without a pager the text goes to the terminal")
}

func values(t *testing.T, text string) (all []any) {
	t.Helper()
	for dec := json.NewDecoder(strings.NewReader(text)); ; {
		var v any
		err := dec.Decode(&v)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err, text)
		all = append(all, v)
	}
}

func plainASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if r > unicode.MaxASCII {
			return -1
		}
		return r
	}, s)
}

// TestProgramGuardsItsTerminal runs the real program as a user does.
func TestProgramGuardsItsTerminal(t *testing.T) {
	h := newHostileHome(t)
	tty := openPTY(t)
	cmd := exec.Command("uwf", "thread", "read", "@")
	cmd.Env, cmd.Dir = append(os.Environ(), h.environ...), h.dir
	cmd.Stdout, cmd.Stderr = tty.slave, tty.slave
	require.NoError(t, cmd.Run())
	out := tty.text(t)
	require.Contains(t, out, escapedMark)
	requireHarmless(t, out, cmd.Args)
}

// mark clears the screen, hides text, sets colours, the clipboard and the title, and changes the direction,
// in 7-bit and 8-bit sequences.
const mark = "\x1b[2J\x1b[8m\x1b[35mH\x1b]52;c;UFdO\a\x1b]0;T\x1b\\\u009b2J\u0090q\u009c\u202e\u2066\u200f\x7f\b\x00\u2028\U000E0041"

const escapedMark = `\u001b[2J`

// own matches the sequences that our programs use. None is part of mark.
var own = regexp.MustCompile("\r\x1b\\[K|\x1b\\[(m|1m|2m|31m|32m|33m|J|[0-9]+A)")

func requireHarmless(t *testing.T, out string, line []string) {
	t.Helper()
	rest := own.ReplaceAllString(out, "")
	require.True(t, utf8.ValidString(rest), "uwf %q: not UTF-8: %q", line, rest)
	at := strings.IndexFunc(rest, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) ||
			r == '\u2028' || r == '\u2029' || r >= 0xE0000 && r <= 0xE007F
	})
	if at >= 0 {
		require.Fail(t, "a terminal would obey", "uwf %q: %q", line, rest[max(0, at-80):min(len(rest), at+80)])
	}
}

type command struct{ words, args, flags []string }

var (
	usageLine = regexp.MustCompile("(?s)\n## (uwf [a-z -]+)\n\n[^\n]+\n\n```text\n([^\n]+)\n```\n(.*)$")
	boolFlag  = regexp.MustCompile("(?m)^  (?:-[a-zA-Z], |    )(--[a-z-]+)(?:  |$)")
	word      = regexp.MustCompile(`[<\[][^>\]]+[>\]]`)
)

// commandsOf parses the command reference.
func commandsOf(t *testing.T) []command {
	t.Helper()
	pages, err := filepath.Glob("../../docs/cli/*.md")
	require.NoError(t, err)
	var text strings.Builder
	for _, page := range pages {
		data, err := os.ReadFile(page)
		require.NoError(t, err)
		text.Write(data)
	}
	var all []command
	for _, section := range strings.SplitAfter(strings.ReplaceAll(text.String(), "\n## ", "\x00\n## "), "\x00") {
		m := usageLine.FindStringSubmatch(section)
		if m == nil {
			continue
		}
		c := command{words: strings.Fields(m[1])[1:]}
		for _, w := range word.FindAllString(strings.TrimPrefix(m[2], m[1]), -1) {
			if w != "[flags]" {
				c.args = append(c.args, w)
			}
		}
		for _, f := range boolFlag.FindAllStringSubmatch(m[3], -1) {
			c.flags = append(c.flags, f[1])
		}
		all = append(all, c)
	}
	require.Greater(t, len(all), 60)
	return all
}

// instead returns values to type for an argument, existing and missing ones.
func instead(t *testing.T, arg string) []string {
	unknown := "un" + strings.ReplaceAll(mark, "\x00", "") + "known"
	switch arg {
	case "<workflow>", "<name|hash|file>":
		return []string{"hostile", unknown, "./bad.yaml"}
	case "<file.yaml>", "<file.yaml…>":
		return []string{"hostile.yaml", "bad.yaml", "odd\x1b[2J.yaml"}
	case "<remote>", "[remote]", "<new>":
		return []string{unknown}
	case "[thread…] [remote]":
		return []string{"@", unknown}
	case "<directory>", "<file|directory…>":
		return []string{"odd\x1b[2J", unknown}
	case "<address>":
		return []string{"github:" + unknown, unknown}
	case "<name>":
		return []string{"fresh", unknown}
	case "[title]", "<message>":
		return []string{unknown}
	case "<thread>", "[thread]", "[thread…]", "<thread|step>":
		return []string{"@", unknown}
	case "<step>", "<good>", "<bad>":
		return []string{"@-1", unknown}
	case "<key>":
		return []string{"agents.mock", unknown}
	case "<value>":
		return []string{unknown}
	case "<kind>":
		return []string{"step", unknown}
	case "<file>":
		return []string{"all.uwfb", "odd\x1b[2J.yaml", unknown}
	case "<hash>", "<hash…>":
		return []string{"HEAD", "OUTPUT", "TURN", unknown}
	case "<type>", "<type|schema>":
		return []string{"@uwf/text", unknown}
	case "<json|file|->", "<text|->":
		return []string{"odd\x1b[2J.yaml", `"` + unknown + `"`}
	case "<command…>":
		return []string{"true"}
	case "<shell>":
		return []string{"bash", unknown}
	case "[command…]", "[topic|command…]":
		return []string{"thread", unknown}
	}
	require.Fail(t, "what to type for an argument", "%s: tell instead", arg)
	return nil
}

// lines returns the command lines of a command: with each form of its arguments, as JSON and YAML, and with
// each flag that takes no value.
func (c command) lines(t *testing.T) [][]string {
	all := [][]string{c.words}
	for _, arg := range c.args {
		var longer [][]string
		for i, value := range instead(t, arg) {
			for j, line := range all {
				if i == 0 || j == 0 { // not every pair
					longer = append(longer, append(append([]string{}, line...), value))
				}
			}
		}
		all = longer
	}
	first := all[0]
	for _, format := range []string{"json", "yaml"} {
		all = append(all, append(append([]string{}, first...), "--format", format))
	}
	for _, flag := range c.flags {
		all = append(all, append(append([]string{}, first...), flag))
	}
	return all
}

// hostileHome is a home in which all texts are hostile.
type hostileHome struct {
	dir, home  string
	environ    []string
	exe        string
	replacings *strings.Replacer
}

// more returns command lines that cannot be derived from the reference.
func (h *hostileHome) more() [][]string {
	return [][]string{
		{"run", "hostile", "-p", "x" + mark[:3], "--agent", "mock"},
		{"run", "hostile", "-p", "x", "--agent", "bad"},
		{"thread", "step", "@", "--agent", "bad"},
		{"thread", "step", "@", "--agent", "gone\x1b[2J"},
		{"thread", "read", "@", "--quota", "100000"},
		{"step", "read", "@-1", "--quota", "100000"},
		{"thread", "read", "@", "--bundle", "all.uwfb"},
		{"step", "prompt", "--thread", "@", "--role", "checker"},
		{"thread", "replay", "@", "--from", "worker"},
		{"thread", "graph", "@", "--format", "svg"},
		{"thread", "graph", "@", "--format", "mermaid"},
		{"workflow", "validate", "bad.yaml", "--format", "github"},
		{"cas", "walk", "HEAD", "--format", "tree"},
		{"__complete", "thread", "start", ""},
		{"__complete", "thread", "step", ""},
		{"no" + mark[:4]}, {"thread", "\x1b[2J"}, {"thread", "show", "@", "--\x1b[2J"}, {"--format", "\x1b[2J", "version"},
	}
}

func newHostileHome(t *testing.T) *hostileHome {
	t.Helper()
	dir := t.TempDir()
	h := &hostileHome{dir: dir, home: filepath.Join(dir, "home"), replacings: strings.NewReplacer()}
	var err error
	h.exe, err = exec.LookPath("uwf")
	require.NoError(t, err)
	h.environ = []string{"UWF_HOME=" + h.home, "HOME=" + dir, "TERM=xterm", "UWF_PAGER=cat", "EDITOR=true", "GORACE=atexit_sleep_ms=0", "PATH=" + os.Getenv("PATH")}
	in := strings.Trim(strconv.QuoteToASCII(mark), `"`) // YAML reads the same escapes
	written := strings.NewReplacer("MARK2", strings.ReplaceAll(in, `\`, `\\`), "MARK", in)
	for name, text := range map[string]string{
		"home/config.yaml": fmt.Sprintf(hostileConfig, filepath.Join(dir, "scenario.yaml")),
		"hostile.yaml":     written.Replace(hostileWorkflow),
		"bad.yaml":         "name: bad\n" + mark + ": [\nx: \x9b\n",
		"odd\x1b[2J.yaml":  "\"" + mark + "\"",
		"scenario.yaml":    written.Replace(hostileScenario),
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	h.must(t, "workflow put hostile.yaml", 0)
	task := strings.ReplaceAll(mark, "\x00", "")
	h.on(t, io.Discard, io.Discard, nil, []string{"run", "hostile", "-p", task})
	h.on(t, io.Discard, io.Discard, nil, []string{"thread", "start", "hostile", "-p", task})
	h.must(t, "thread step @", 0)
	h.must(t, "thread step @ --agent bad", 5)
	h.must(t, "thread export --all -o all.uwfb", 0)
	var step struct{ Head, Hash, Detail string }
	require.NoError(t, json.Unmarshal([]byte(h.must(t, "thread show @ --format json", 0)), &step))
	shown := h.must(t, "step show @-1 --format json", 0)
	turns := h.must(t, "step turns @ --format json", 0)
	hash := regexp.MustCompile(`"[0-9A-HJKMNP-TV-Z]{13}"`)
	last := func(text string) string {
		all := hash.FindAllString(text, -1)
		return strings.Trim(all[len(all)-1], `"`)
	}
	h.replacings = strings.NewReplacer("HEAD", step.Head, "OUTPUT", last(shown), "TURN", last(turns))
	return h
}

func (h *hostileHome) must(t *testing.T, line string, status int) string {
	t.Helper()
	var out, talk bytes.Buffer
	require.Equal(t, status, h.on(t, &out, &talk, nil, strings.Fields(line)), "%s\n%s", line, talk.String())
	return out.String()
}

// copy returns a copy of the home that a command may change.
func (h *hostileHome) copy(t *testing.T) *hostileHome {
	t.Helper()
	copied := *h
	copied.home = filepath.Join(t.TempDir(), "home")
	require.NoError(t, os.CopyFS(copied.home, os.DirFS(h.home)))
	copied.environ = append(h.environ[:len(h.environ):len(h.environ)], "UWF_HOME="+copied.home, "UWF_PAGER=tee")
	return &copied
}

// run returns the output of a command on a terminal.
func (h *hostileHome) run(t *testing.T, line []string) string {
	t.Helper()
	words := append([]string{}, line...)
	for i := range words {
		words[i] = h.replacings.Replace(words[i])
	}
	tty := openPTY(t)
	h.on(t, tty.terminal(), tty.terminal(), tty, words)
	return tty.text(t)
}

// on runs a command line in this process. A command that keeps watching is interrupted after its first
// output.
func (h *hostileHome) on(t *testing.T, stdout, stderr io.Writer, tty *pty, words []string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var stdin io.Reader = strings.NewReader("")
	if tty != nil {
		stdin = tty.slave
		if words[0] == "setup" || len(words) > 1 && (words[1] == "resume" || words[1] == "rm" || words[1] == "trust") { // they ask questions, and get no answer
			_, err := tty.master.WriteString("\x04")
			require.NoError(t, err)
		}
		for _, w := range words {
			if w == "--follow" || w == "-" || words[0] == "setup" {
				tty.whenShown(cancel)
			}
		}
	}
	rand, err := os.Open("/dev/urandom")
	require.NoError(t, err)
	defer rand.Close()
	return cli.Main(ctx, env.Env{
		Args: words, Environ: h.environ, Dir: h.dir, Stdin: stdin, Stdout: stdout, Stderr: stderr,
		Now: time.Now, Rand: rand, Exe: h.exe,
	})
}

// pty is a terminal with four lines, so that nearly everything is paged.
type pty struct {
	master, slave *os.File
	shown         chan struct{}
	all           chan []byte
	more          chan struct{} // signals new output
	mu            sync.Mutex
	seen          []byte
}

func openPTY(t *testing.T) *pty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	fd := int(master.Fd())
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 4, Col: 100}))
	raw, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	require.NoError(t, err)
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO
	require.NoError(t, unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, raw))
	p := &pty{master: master, slave: slave, shown: make(chan struct{}), all: make(chan []byte, 1), more: make(chan struct{}, 1)}
	go p.read()
	t.Cleanup(func() { _ = master.Close(); _ = slave.Close() })
	return p
}

func (p *pty) read() {
	var all []byte
	b := make([]byte, 4096)
	for {
		n, err := p.master.Read(b)
		if n > 0 && len(all) == 0 {
			close(p.shown)
		}
		all = append(all, b[:n]...)
		p.mu.Lock()
		p.seen = all
		p.mu.Unlock()
		select {
		case p.more <- struct{}{}:
		default:
		}
		if err != nil { // the other side is closed
			p.all <- all
			return
		}
	}
}

func (p *pty) soFar() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return string(p.seen)
}

func (p *pty) terminal() io.Writer { return terminal.Of(p.slave) }

func (p *pty) whenShown(do func()) {
	go func() { <-p.shown; do() }()
}

// text returns the complete output after the end.
func (p *pty) text(t *testing.T) string {
	t.Helper()
	require.NoError(t, p.slave.Close())
	select {
	case all := <-p.all:
		return string(all)
	case <-time.After(time.Minute):
		require.Fail(t, "somebody still has the terminal")
		return ""
	}
}

const hostileConfig = `
providers: { p: { baseUrl: "http://127.0.0.1:1/v1", apiKey: "sk-0123456789" } }
models: { m: { provider: p, name: "model\e[2J" } }
defaultModel: m
defaultAgent: mock
agents:
  mock: { command: uwf-mock, args: [--mock-data, %q] }
  bad: { command: sh, args: [-c, "printf 'oops \\033[2J\\033[8m\\233 \\302\\2332J' >&2; exit 3", --] }
`

const hostileWorkflow = `
name: hostile
description: "describes MARK"
roles:
  worker: &role
    description: "works MARK"
    goal: "goal MARK"
    capabilities: ["cap MARK"]
    procedure: "do MARK"
    output: "out MARK"
    frontmatter:
      type: object
      properties: { $status: { const: done }, note: { type: string } }
      required: [$status]
  checker: *role
graph:
  $START: { _: { role: worker, prompt: "MARK {{{$prompt}}}" } }
  worker: { done: { role: checker, prompt: "{{{note}}}" } }
  checker: { done: { role: $END, prompt: "Done MARK." } }
`

const hostileScenario = `
steps:
  - role: worker
    session: "s MARK"
    turns:
      - { say: "I say MARK" }
      - { tool: "tool MARK", args: { command: "c MARK" }, result: "r MARK" }
    output: "---\n$status: done\nnote: \"MARK2\"\n---\nbody MARK\n"
  - role: checker
    output: "---\n$status: done\nnote: x\n---\nbody MARK\n"
repeat: true
`
