//go:build browser

package webtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// The timeline shows who worked when, and who waits. It grows while an agent works, and also works without
// scripts and in the exported file.
func TestTimeLine(t *testing.T) {
	w := newWorld(t)
	parent := w.uwf("run", "./panel.yaml", "-p", "it")
	working := w.uwf("thread", "start", "./two.yaml", "-p", "work")
	require.NoError(t, os.WriteFile(filepath.Join(w.home, "slow.yaml"), []byte("steps:\n  - turns:\n      - { tool: Bash, args: { command: ls } }\n      - { say: Done., delay: 2s }\n    delay: 3s\n    value: { $status: done, said: it }\n"), 0o600))
	w.serve()
	w.open("thread/" + parent)
	lanes := func() []string {
		return evaluate[[]string](w, `[...document.querySelectorAll('.lane p')].map((p) => p.innerText)`)
	}
	require.Len(t, lanes(), 3, "the role, and its two children: %v", lanes())
	require.NotZero(t, evaluate[int](w, `document.querySelectorAll('.lane rect.work').length`))
	require.NotZero(t, evaluate[int](w, `document.querySelectorAll('.lane rect.wait, .lane rect.kids').length`), "one child waits for a person")
	w.accessible("a time line")
	w.open("thread/" + working)
	w.until("live")
	w.uwf("thread", "step", working, "--agent", "uwf-mock --mock-data "+filepath.Join(w.home, "slow.yaml"), "--background")
	w.until("Running: step 1, first")
	require.Eventually(t, func() bool { return evaluate[int](w, `document.querySelectorAll('.lane rect.busy').length`) == 1 }, patience, 20*time.Millisecond)
	require.Eventually(t, func() bool { return evaluate[int](w, `document.querySelectorAll('.lane rect.mark').length`) == 1 }, patience, 20*time.Millisecond)
	require.Eventually(t, func() bool {
		return evaluate[int](w, `document.querySelectorAll('.lane a[href="#s1"] rect.work').length`) == 1
	}, patience, 20*time.Millisecond)
	w.do(chromedp.Evaluate[chromedp.Void](`document.querySelector('.lane a[href="#s1"]').dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true }))`))
	require.Eventually(t, func() bool { return strings.HasSuffix(evaluate[string](w, "location.hash"), "#s1") }, patience, 20*time.Millisecond)
	w.quiet()
	_, err := chromedp.Call(w.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	require.NoError(t, err)
	w.open("thread/" + working)
	require.NotZero(t, evaluate[int](w, `document.querySelectorAll('.lane rect.work').length`))

	file := filepath.Join(w.home, "run.html")
	w.uwf("thread", "export", parent, "--html", "-o", file)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), `class="time"`)
}

// A user finds a workflow from the inbox with the keyboard, and sees which agents would run it.
func TestWorkflow(t *testing.T) {
	w := newWorld(t)
	id := w.uwf("run", "./release.yaml", "-p", "version 7")
	w.serve()
	w.tabTo(`#main a[href*="/workflow/"]`)
	w.do(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(chromedp.CSS(".graph img")))
	w.until("a person")
	require.Positive(t, evaluate[int](w, "document.querySelector('.graph img').naturalWidth"), "the picture is shown")
	require.Contains(t, w.text(), "a person")
	require.Contains(t, w.text(), "a command")
	w.accessible("a workflow")
	w.tabTo(`a[href*="/thread/` + id + `"]`)
	w.do(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(chromedp.CSS("#part-time")))
	w.tabTo(`.about a[href*="/workflow/"]`)
	w.open("workflows")
	require.Contains(t, w.text(), "release")
	w.accessible("the workflows")
	w.quiet()
}

// Costs are shown as a picture, a table and a file with the same numbers.
func TestCostsPage(t *testing.T) {
	w := newWorld(t)
	w.uwf("run", "./panel.yaml", "-p", "it")
	w.uwf("run", "./two.yaml", "-p", "it")
	w.serve()
	w.open("stats")
	w.tabTo(`input[value="workflow"]`)
	w.do(chromedp.KeyEvent(" "))
	w.tabTo(`input[value="role"]`)
	w.do(chromedp.KeyEvent(" "))
	w.tabTo("form button")
	w.do(chromedp.KeyEvent(kb.Enter))
	w.until("Cost for each day, by role")
	require.Contains(t, w.text(), "$0.080", "what it has cost all together")
	require.Len(t, evaluate[[]string](w, `[...document.querySelectorAll('.columns rect')].map((r) => r.textContent)`), 2, "two roles have cost something")
	w.accessible("costs")
	csv := evaluate[string](w, `fetch(document.querySelector('a[download]').href).then((r) => r.text()).then((t) => { window.csv = t }), ''`)
	require.Empty(t, csv)
	require.Eventually(t, func() bool { csv = evaluate[string](w, "window.csv || ''"); return csv != "" }, patience, 20*time.Millisecond)
	require.Contains(t, csv, "role,steps,durationMs,")
	require.Contains(t, csv, "first,2,")
	w.quiet()
}
