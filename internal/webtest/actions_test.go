//go:build browser

package webtest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// open loads a page of the server.
func (w *world) open(path string) {
	w.Helper()
	w.do(chromedp.Navigate(w.base+path), chromedp.WaitVisible(chromedp.CSS("h1")))
}

// unfold opens a collapsed part of the page.
func (w *world) unfold(selector string) {
	w.Helper()
	w.do(chromedp.Click(chromedp.CSS(selector+" > summary")), chromedp.WaitVisible(chromedp.CSS(selector+"[open] button")))
}

// press presses the button of a form.
func (w *world) press(verb string) {
	w.Helper()
	w.do(chromedp.Click(chromedp.CSS(fmt.Sprintf(`form[action$="/%s"] button:not([hidden])`, verb))))
}

func (w *world) write(verb, text string) {
	w.Helper()
	w.do(chromedp.SendKeys(chromedp.CSS(fmt.Sprintf(`form[action$="/%s"] textarea`, verb)), text))
}

// here returns the thread on the current page.
func (w *world) here() string {
	w.Helper()
	return evaluate[string](w, `(location.pathname.match(/thread\/(\w{26})/) || [])[1] || ""`)
}

// head returns the head of a thread, according to uwf.
func (w *world) head(id string) string {
	w.Helper()
	var out struct{ Head string }
	data, err := w.command("thread", "show", id, "--format", "json").Output()
	require.NoError(w, err)
	require.NoError(w, json.Unmarshal(data, &out))
	return out.Head
}

// firstStep goes from a thread's page to that of its first step.
func (w *world) firstStep() {
	w.Helper()
	if !evaluate[bool](w, "document.querySelector('#s1').open") {
		w.do(chromedp.Click(chromedp.CSS("#s1 > summary")))
	}
	w.do(chromedp.Click(chromedp.CSS(`#s1 a[href*="/step/"]`)), chromedp.WaitVisible(chromedp.CSS("#retry")))
}

// moved waits until a thread's head has changed and returns it.
func (w *world) moved(id, before string) string {
	w.Helper()
	require.Eventually(w, func() bool { return w.head(id) != before }, patience, 50*time.Millisecond)
	return w.head(id)
}

// filesOf returns the contents of all files in a directory and below.
func (w *world) filesOf(dir string) string {
	w.Helper()
	all := ""
	require.NoError(w, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil //nolint:nilerr // it has gone meanwhile
		}
		data, _ := os.ReadFile(path) // as above
		all += string(data)
		return nil
	}))
	return all
}

// decide presses the button of a choice that needs a text, and answers.
func (w *world) decide(choice, field, text string) {
	w.Helper()
	w.tap("[data-answer]", choice)
	w.do(chromedp.SendKeys(chromedp.CSS(fmt.Sprintf(`[data-answer] details[open] [name="field.%s"]`, field)), text))
	w.tap("[data-answer] details[open]", "Answer "+choice)
}

// steps waits until a thread has n steps.
func (w *world) steps(n int) { w.Helper(); w.until(fmt.Sprintf("Steps\n%d", n)) }

// A thread is retried, undone, redone, sealed, forked, replayed, messaged and stopped, all from its page.
func TestEveryAction(t *testing.T) {
	w := newWorld(t)
	id := w.uwf("run", "./two.yaml", "-p", "it")
	w.serve("--actions")

	w.open("thread/" + id)
	w.unfold("#more")
	w.press("seal")
	w.until("Done")
	require.Regexp(t, `[0-9a-f]{64}`, w.text())
	w.do(chromedp.Click(chromedp.CSS("main a")), chromedp.WaitVisible(chromedp.CSS("#part-about")))

	w.unfold("#more")
	w.press("undo")
	w.steps(1)
	w.until("idle")
	w.unfold("#more")
	w.press("redo")
	w.steps(2)

	before := w.head(id)
	w.unfold("#more")
	w.write("retry", "shorter, please")
	w.press("retry")
	before = w.moved(id, before)
	w.until("completed")
	w.steps(2)

	// The first step is repeated from its own page, and with it the steps that followed.
	w.firstStep()
	w.unfold("#retry")
	w.write("retry", "in other words")
	w.press("retry")
	w.moved(id, before)
	w.until("completed")
	w.steps(2)

	w.firstStep()
	w.unfold("#retry")
	w.press("fork")
	w.until("fork of")
	require.NotEqual(t, id, w.here())
	w.steps(1)
	w.press("continue")
	w.until("completed")

	w.open("thread/" + id)
	w.firstStep()
	w.unfold("#retry")
	w.press("replay")
	w.until("completed")
	require.NotEqual(t, id, w.here())

	w.open("thread/" + id)
	w.unfold("#next")
	w.write("resume", "and once more")
	w.press("resume")
	w.steps(4)
	w.until("completed")
	w.quiet()
}

// A working agent gets a message, and is stopped.
func TestTellAndStop(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, os.WriteFile(filepath.Join(w.home, "script.yaml"), []byte("steps:\n  - turns: [{ say: I begin. }]\n    delay: 10m\n    value: { $status: done }\n"), 0o600))
	id := w.uwf("thread", "start", "./talk.yaml", "-p", "speak")
	w.serve("--actions")
	w.open("thread/" + id)
	w.press("continue")
	w.until("Running: step")
	w.write("message", "Speak louder")
	w.press("message")
	require.Eventually(t, func() bool {
		return strings.Contains(w.filesOf(filepath.Join(w.home, "uwf", "runs", id)), "Speak louder")
	}, patience, 20*time.Millisecond)
	w.until("Running: step")
	w.press("stop")
	w.until("Continue")
	require.NotContains(t, w.text(), "Running: step")
	w.quiet()
}

// Work in a worktree is applied to a branch.
func TestApply(t *testing.T) {
	w := newWorld(t)
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...)
		cmd.Dir = w.home
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	edit := "name: edit\ndescription: Edits.\nroles: { edit: { description: Edits., run: [sh, -c, 'echo better > a'] } }\ngraph: { $START: { _: edit }, edit: { passed: $END, failed: $END } }\n"
	for name, text := range map[string]string{"edit.yaml": edit, "a": "good\n", ".gitignore": "uwf/\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(w.home, name), []byte(text), 0o600))
	}
	git("init", "-q", "-b", "main")
	git("add", ".")
	git("commit", "-q", "-m", "first")
	id := w.uwf("run", "./edit.yaml", "-p", "edit", "--workspace", "worktree")
	w.serve("--actions")
	w.open("thread/" + id)
	w.unfold("#more")
	w.do(chromedp.SendKeys(chromedp.CSS(`input[name="branch"]`), "better"))
	w.press("apply")
	w.until("Done")
	w.until("better")
	require.Equal(t, "better\n", git("show", "better:a"))
	w.quiet()
}

// A run with children shows them and which of them ask a question; it can be answered on the parent's page as
// on the child's.
func TestChildren(t *testing.T) {
	w := newWorld(t)
	id := w.uwf("run", "./panel.yaml", "-p", "it")
	w.serve("--actions")
	w.open("thread/" + id)
	w.until("1 suspended")
	w.until("1 completed")
	w.do(chromedp.Click(chromedp.CSS(`#part-kids a`)), chromedp.WaitVisible(chromedp.CSS("[data-answer]")))
	w.until("Plays security of thread " + id)
	require.Contains(t, w.text(), "Release the holes in it?")
	w.open("thread/" + id)
	w.decide("approved", "comment", "fine")
	w.until("2 completed")
	w.until("completed")
	w.quiet()
}

// Everything can be reached and done with the keyboard alone.
func TestActionsWithTheKeyboard(t *testing.T) {
	w := newWorld(t)
	id := w.uwf("run", "./two.yaml", "-p", "it")
	w.serve("--actions")
	w.open("thread/" + id)
	w.tabTo("#more > summary")
	w.do(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(chromedp.CSS("#more[open] button")))
	w.tabTo(`form[action$="/undo"] button`)
	w.do(chromedp.KeyEvent(kb.Enter))
	w.steps(1)
	w.tabTo(`form[action$="/continue"] button`)
	w.do(chromedp.KeyEvent(kb.Enter))
	w.steps(2)
	w.until("completed")
	w.tabTo("#s1 > summary")
	if !evaluate[bool](w, "document.querySelector('#s1').open") {
		w.do(chromedp.KeyEvent(kb.Enter))
	}
	w.tabTo(`#s1 a[href*="/step/"]`)
	w.do(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(chromedp.CSS("#retry")))
	w.tabTo("#retry > summary")
	w.do(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(chromedp.CSS("#retry[open] button")))
	w.tabTo("#retry textarea")
	w.do(chromedp.KeyEvent("by hand"))
	w.tabTo("#retry button")
	before := w.head(id)
	w.do(chromedp.KeyEvent(kb.Enter))
	w.moved(id, before)
	w.until("completed")
	w.steps(2)
	w.quiet()
}
