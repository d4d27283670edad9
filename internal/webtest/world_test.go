//go:build browser

package webtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const release = `name: release
description: Drafts, has somebody approve, and releases. <script>alert(1)</script>
roles:
  draft: { description: "Drafts. <img src=x onerror=alert(2)>", run: [echo, "{{{$prompt}}}"] }
  approve:
    description: Somebody approves.
    person: true
    frontmatter:
      type: object
      properties:
        $status: { enum: [approved, rejected] }
        comment: { type: string, description: "Why, in your words" }
      required: [$status, comment]
graph:
  $START: { _: draft }
  draft: { passed: { role: approve, prompt: "Release {{{$prompt}}}? <svg onload=alert(3)>" }, failed: $END }
  approve: { approved: { role: $END, prompt: "Released: {{{comment}}}" }, rejected: { role: draft, prompt: "Once more." } }
`

const talk = `name: talk
description: One role that takes its time.
roles:
  speaker:
    description: Speaks.
    goal: Speak.
    capabilities: []
    procedure: Speak.
    output: Words.
    frontmatter: { type: object, properties: { $status: { enum: [done] } }, required: [$status] }
graph: { $START: { _: { role: speaker, prompt: Speak. } }, speaker: { done: { role: $END, prompt: Said. } } }
`

// two has a role that runs twice; script determines what it does.
const two = `name: two
description: Two roles, one after the other.
roles:
  first: { description: Begins., goal: Begin., capabilities: [], procedure: Begin., output: Words., frontmatter: { type: object, properties: { $status: { enum: [done] }, said: { type: string } }, required: [$status] } }
  second: { description: Ends., goal: End., capabilities: [], procedure: End., output: Words., frontmatter: { type: object, properties: { $status: { enum: [done] }, said: { type: string } }, required: [$status] } }
graph:
  $START: { _: { role: first, prompt: "Begin {{{$prompt}}}." } }
  first: { done: { role: second, prompt: "End {{{said}}}." } }
  second: { done: { role: $END, prompt: "It is done." } }
`

const script = `repeat: true
steps:
  - turns: [{ say: "I look at it." }]
    value: { $status: done, said: it }
    usage: { inputTokens: 1200, outputTokens: 300, costUsd: 0.02 }
`

// panel has children, one of which asks a person.
const panel = `name: panel
description: Some look at it, each in a thread of its own.
roles:
  panel:
    description: All look.
    all:
      docs: { workflow: ./two.yaml, prompt: "the words of {{{$prompt}}}" }
      security: { workflow: ./release.yaml, prompt: "the holes in {{{$prompt}}}" }
graph:
  $START: { _: { role: panel, prompt: "Look at {{{$prompt}}}." } }
  panel: { done: $END, failed: $END }
`

// world is a home, a server, and a browser.
type world struct {
	*testing.T
	bin, home string
	base      string // of the pages
	server    int    // process ID of uwf web, which has started the server
	ctx       context.Context
	pictures  string

	outer    *world // of a subtest: has the browser's complaints
	mu       sync.Mutex
	complain []string // the browser's warnings and errors
}

// repo returns the root of the checkout.
func repo(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	return root
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, bin: os.Getenv(binDir), home: t.TempDir(), pictures: filepath.Join(repo(t), ".tmp", "web")}
	require.NoError(t, os.MkdirAll(w.pictures, 0o755))
	for name, text := range map[string]string{
		"release.yaml": release, "talk.yaml": talk, "two.yaml": two, "panel.yaml": panel, "script.yaml": script,
		"uwf/config.yaml": "agents: { mock: { command: uwf-mock, args: [--mock-data, " + filepath.Join(w.home, "script.yaml") + "] }, slow: { command: uwf-mock, args: [--mock-data, " + filepath.Join(w.home, "slow.yaml") + "] } }\ndefaultAgent: mock\ncommands: { sandbox: { mode: none } }\n",
	} {
		path := filepath.Join(w.home, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return w
}

// Time limits for waiting.
const (
	patience = 45 * time.Second
	pause    = 50 * time.Millisecond // polling interval
)

// binDir is the environment variable with the directory of the programs.
const binDir = "UWF_WEBTEST_BIN"

// TestMain builds the programs once.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "uwf-webtest")
	if err == nil {
		build := exec.Command("go", "build", "-o", dir+"/", "./cmd/uwf", "./cmd/uwf-web", "./cmd/uwf-mock")
		build.Dir, build.Env, build.Stderr = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
		err = errors.Join(build.Run(), os.Setenv(binDir, dir))
	}
	status := 1
	if err == nil {
		status = m.Run()
	}
	_ = os.RemoveAll(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(status)
}

func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(w.Context(), filepath.Join(w.bin, "uwf"), args...)
	cmd.Dir = w.home
	cmd.Env = append(os.Environ(), "UWF_HOME="+filepath.Join(w.home, "uwf"), "USER=tess", "PATH="+w.bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return cmd
}

// uwf runs uwf and returns the thread in its output.
func (w *world) uwf(args ...string) string {
	w.Helper()
	var stdout, stderr bytes.Buffer
	cmd := w.command(args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	_ = cmd.Run() // a thread that needs a person is not an error here
	var out struct{ Thread string }
	require.NoError(w, json.Unmarshal(stdout.Bytes(), &out), "uwf %s: %s %s", strings.Join(args, " "), &stdout, &stderr)
	return out.Thread
}

// start starts uwf web and returns its address.
func (w *world) start(args ...string) string {
	w.Helper()
	cmd := w.command(append([]string{"--json", "web"}, args...)...)
	stdout, err := cmd.StdoutPipe()
	require.NoError(w, err)
	cmd.Stderr = os.Stderr
	require.NoError(w, cmd.Start())
	w.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait() // killed with the test's context
	})
	var at struct{ Address string }
	require.NoError(w, json.NewDecoder(stdout).Decode(&at))
	w.server = cmd.Process.Pid
	return at.Address
}

// serve starts uwf web and a browser that opens its address.
func (w *world) serve(args ...string) {
	w.Helper()
	address := w.start(args...)
	w.base, _, _ = strings.Cut(address, "?")
	w.browse(address)
}

// browse opens an address in a new browser.
func (w *world) browse(address string, more ...chromedp.ExecAllocatorOption) {
	w.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], more...)
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	w.Cleanup(stop)
	w.ctx, stop = chromedp.NewContext(ctx)
	w.Cleanup(stop)
	w.do()
	w.ctx, stop = context.WithTimeout(w.ctx, 15*time.Minute)
	w.Cleanup(stop)
	require.NoError(w, chromedp.Listen(w.ctx, func(ev any) {
		w.mu.Lock()
		defer w.mu.Unlock()
		switch ev := ev.(type) {
		case *runtime.EventExceptionThrown:
			w.complain = append(w.complain, ev.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			w.complain = append(w.complain, "console: "+string(ev.Type))
		case *log.EventEntryAdded: // a violation of the Content-Security-Policy, or a failed request
			w.complain = append(w.complain, ev.Entry.Text+" "+ev.Entry.URL)
		}
	}))
	w.do(chromedp.Navigate(address))
}

// quiet checks that the browser has reported no problem.
func (w *world) quiet() {
	w.Helper()
	of := w
	if w.outer != nil {
		of = w.outer
	}
	of.mu.Lock()
	defer of.mu.Unlock()
	require.Empty(w, of.complain)
}

// do performs actions on a page. A live page may replace an element before the action, as it may for a user,
// so it tries again.
func (w *world) do(actions ...chromedp.Action[chromedp.Void]) {
	w.Helper()
	for _, action := range actions {
		for range 20 {
			ctx, stop := context.WithTimeout(w.ctx, patience)
			err := chromedp.Do(ctx, action)
			stop()
			if gone := (&cdproto.Error{}); errors.As(err, &gone) && gone.Code == noNode {
				continue
			}
			if err != nil {
				w.Fatalf("%v; the page is:\n%s", err, w.text())
			}
			break
		}
	}
}

// noNode is the browser's error for a replaced element.
const noNode = -32000

// evaluate returns the value of an expression in the page.
func evaluate[T any](w *world, expression string) T {
	w.Helper()
	value, err := chromedp.Run(w.ctx, chromedp.Evaluate[T](expression))
	require.NoError(w, err, expression)
	return value
}

// text returns the visible text of a page.
func (w *world) text() string {
	w.Helper()
	text, _ := chromedp.Run(w.ctx, chromedp.Evaluate[string]("document.body ? document.body.innerText : ''")) // while a page is loading there is none
	return text
}

// until waits for text on the page, without reloading it.
func (w *world) until(words string) {
	w.Helper()
	text := ""
	if !assert.Eventually(w, func() bool { text = w.text(); return strings.Contains(text, words) }, patience, 20*time.Millisecond) {
		w.Fatalf("%q never came; the page is:\n%s", words, text)
	}
}

// screen sets the size and the colour scheme.
func (w *world) screen(width int64, dark bool) {
	w.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	w.do(chromedp.EmulateViewport(width, 900))
	_, err := chromedp.Call(w.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	require.NoError(w, err)
}

// picture takes a screenshot of the whole page.
func (w *world) picture(name string) {
	w.Helper()
	data, err := chromedp.Run(w.ctx, chromedp.FullScreenshot(100))
	require.NoError(w, err)
	require.NoError(w, os.WriteFile(filepath.Join(w.pictures, name+".png"), data, 0o644))
}
