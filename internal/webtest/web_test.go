//go:build browser

package webtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// A user finds the question in the inbox and answers it, with the keyboard alone.
func TestAnswerWithTheKeyboard(t *testing.T) {
	w := newWorld(t)
	id := w.uwf("run", "./release.yaml", "-p", "version 2 <b>bold</b>")
	w.serve("--actions")
	require.Contains(t, w.text(), "Release version 2 <b>bold</b>?")
	w.tabTo(`a[href*="/thread/` + id + `"]`)
	w.do(chromedp.KeyEvent(kb.Enter), chromedp.WaitVisible(chromedp.CSS("[data-answer]")))
	w.tabTo(`[data-answer] details summary`)
	w.do(chromedp.KeyEvent(kb.Enter))
	w.tabTo(`[name="field.comment"]`)
	w.do(chromedp.KeyEvent("Fine <script>"))
	w.tabTo("[data-answer] details[open] button")
	w.do(chromedp.KeyEvent(kb.Enter))
	w.until("Released: ")
	w.until("completed")
	require.Contains(t, w.text(), "Fine <script>")
	w.quiet()
}

// tabTo presses Tab until an element has the focus, which must be visible.
func (w *world) tabTo(selector string) {
	w.Helper()
	for range 150 {
		w.do(chromedp.KeyEvent(kb.Tab))
		there := evaluate[bool](w, fmt.Sprintf("!!document.activeElement && document.activeElement.matches(%q)", selector))
		seen := evaluate[bool](w, "!document.activeElement || document.activeElement === document.body || getComputedStyle(document.activeElement).outlineStyle !== 'none'")
		require.True(w, seen, "the focus cannot be seen on the way to %s", selector)
		if there {
			return
		}
	}
	w.Fatalf("no Tab leads to %s", selector)
}

// An agent's progress appears on the page without reloading it.
func TestLive(t *testing.T) {
	w := newWorld(t)
	script := filepath.Join(w.home, "script.yaml")
	require.NoError(t, os.WriteFile(script, []byte("steps:\n  - turns:\n      - { say: The first words., delay: 100ms }\n      - { say: The second words., delay: 1s }\n    delay: 1s\n    value: { $status: done }\n"), 0o600))
	id := w.uwf("thread", "start", "./talk.yaml", "-p", "speak")
	w.serve()
	w.do(chromedp.Navigate(w.base+"thread/"+id), chromedp.WaitVisible(chromedp.CSS("#part-about")))
	w.until("live")
	w.uwf("thread", "step", id, "--agent", "uwf-mock --mock-data "+script, "--until-end", "--background")
	w.until("Running: step 1, speaker")
	w.until("The first words.")
	w.accessible("a thread at work")
	w.until("The second words.")
	w.until("completed")
	w.until("Said.")
	w.quiet()
}

// Every page is complete at every width, in both colour schemes, and without scripts.
func TestPages(t *testing.T) {
	w := newWorld(t)
	waits := w.uwf("run", "./release.yaml", "-p", "version 3 <script>alert(4)</script>")
	other := w.uwf("run", "./release.yaml", "-p", "version 4")
	w.uwf("thread", "answer", other, "--set", "$status=rejected", "--set", "comment=No", "--until-end")
	failed := w.uwf("thread", "start", "./talk.yaml", "-p", "fail")
	require.Error(t, w.command("thread", "step", failed, "--agent", "false").Run())
	parent := w.uwf("run", "./panel.yaml", "-p", "it")
	w.serve("--actions")
	w.do(chromedp.Navigate(w.base + "thread/" + other))
	step := evaluate[string](w, `document.querySelector('#part-steps details:last-of-type a[href*="/step/"]').href`)
	flow := evaluate[string](w, `document.querySelector('.about a[href*="/workflow/"]').href`)
	pages := map[string]string{
		"inbox": w.base, "threads": w.base + "threads", "stats": w.base + "stats?by=workflow&by=role&since=7d", "workflows": w.base + "workflows", "workflow": flow, "thread": w.base + "thread/" + waits,
		"failed": w.base + "thread/" + failed, "children": w.base + "thread/" + parent, "compare": w.base + "diff", "step": step, "diff": w.base + "diff?a=" + waits + "&b=" + other,
		"search": w.base + "threads?q=nothing+is+like+this",
	}
	for name, page := range pages {
		for _, width := range []int64{360, 768, 1440, 2560} {
			for _, dark := range []bool{false, true} {
				w.screen(width, dark)
				w.do(chromedp.Navigate(page), chromedp.WaitVisible(chromedp.CSS("h1")))
				wide := evaluate[int](w, "document.documentElement.scrollWidth - document.documentElement.clientWidth")
				require.Zero(t, wide, "%s is wider than %d", name, width)
				if width == 360 || width == 1440 {
					w.accessible(name)
				}
				w.picture(fmt.Sprintf("%s-%d-%s", name, width, map[bool]string{true: "dark", false: "light"}[dark]))
			}
		}
		require.Equal(t, 1, evaluate[int](w, "document.querySelectorAll('h1').length"), name)
		require.Zero(t, evaluate[int](w, "(() => { const all = [...document.querySelectorAll('[id]')].map((e) => e.id); return all.length - new Set(all).size })()"), "%s: an id is there twice", name)
		require.Zero(t, evaluate[int](w, "[...document.querySelectorAll('input:not([type=hidden]), select, textarea')].filter((e) => e.labels.length === 0).length"), "%s: a field has no label", name)
	}
	w.quiet()
	_, err := chromedp.Call(w.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	require.NoError(t, err)
	w.do(chromedp.Navigate(w.base+"thread/"+waits), chromedp.WaitVisible(chromedp.CSS("[data-answer]")), chromedp.Click(chromedp.CSS("[data-answer] details summary")),
		chromedp.SendKeys(chromedp.CSS(`[name="field.comment"]`), "without scripts"),
		chromedp.Click(chromedp.CSS("[data-answer] details[open] button")), chromedp.WaitNotPresent(chromedp.CSS(`[name="field.comment"]`)))
	require.Equal(t, waits, w.uwf("thread", "wait", waits))
	w.do(chromedp.Navigate(w.base + "thread/" + waits))
	w.until("Released: without scripts")
	w.quiet()
}

// The file from thread export --html executes nothing, and the browser blocks nothing in it.
func TestExport(t *testing.T) {
	w := newWorld(t)
	id := w.uwf("run", "./release.yaml", "-p", "version 5 <script>alert(5)</script>")
	file := filepath.Join(w.home, "run.html")
	w.uwf("thread", "export", id, "--html", "-o", file)
	w.serve()
	there := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			rw.WriteHeader(http.StatusNoContent) // the browser requests an icon
			return
		}
		http.ServeFile(rw, r, file)
	}))
	defer there.Close()
	w.do(chromedp.Navigate(there.URL), chromedp.WaitVisible(chromedp.CSS("h1")))
	require.Contains(t, w.text(), "version 5 <script>alert(5)</script>")
	w.accessible("the file")
	width := evaluate[int](w, "document.querySelector('.graph img').naturalWidth")
	require.Positive(t, width, "the picture is shown")
	w.quiet()
}

// The server ends with the uwf that has started it, however that ends.
func TestEnds(t *testing.T) {
	w := newWorld(t)
	for _, how := range []os.Signal{os.Interrupt, os.Kill} {
		cmd := w.command("--json", "web")
		stdout, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		var at struct{ Address string }
		require.NoError(t, json.NewDecoder(stdout).Decode(&at))
		answer, err := http.Get(at.Address)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.NoError(t, cmd.Process.Signal(how))
		_ = cmd.Wait() // its exit status is that of the signal
		require.Eventually(t, func() bool {
			answer, err := http.Get(at.Address)
			if err == nil {
				_ = answer.Body.Close()
			}
			return err != nil
		}, 10*time.Second, 20*time.Millisecond, "%s", how)
	}
}
