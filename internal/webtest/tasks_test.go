//go:build browser

package webtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// hand acts as a user with the mouse, or with the keyboard alone.
type hand struct {
	*world
	keys bool
}

// press follows a link, expands a part or presses a button.
func (h hand) press(selector string) {
	h.Helper()
	h.do(chromedp.WaitVisible(chromedp.CSS(selector)))
	if !h.keys {
		h.do(chromedp.Click(chromedp.CSS(selector)))
		return
	}
	h.tabTo(selector)
	h.do(chromedp.KeyEvent(kb.Enter))
}

// tick checks a box.
func (h hand) tick(selector string) {
	h.Helper()
	if !h.keys {
		h.do(chromedp.Click(chromedp.CSS(selector)))
		return
	}
	h.tabTo(selector)
	h.do(chromedp.KeyEvent(" "))
}

// write types into a field; in a list, it selects the choice with that prefix.
func (h hand) write(selector, text string) {
	h.Helper()
	h.do(chromedp.WaitVisible(chromedp.CSS(selector)))
	switch {
	case h.keys:
		h.tabTo(selector)
	case strings.HasPrefix(selector, "select"): // its list opens outside the page
		h.do(chromedp.Focus(chromedp.CSS(selector)))
	default:
		h.do(chromedp.Click(chromedp.CSS(selector)))
	}
	h.do(chromedp.KeyEvent(text))
}

// to returns a selector for a link to a thread.
func to(id string) string { return fmt.Sprintf(`main a[href$="/thread/%s"]`, id) }

// at opens a page from the navigation bar.
func (h hand) at(name string) {
	h.Helper()
	h.press(fmt.Sprintf(`nav a[href$="/%s"]`, name))
	h.do(chromedp.WaitVisible(chromedp.CSS(fmt.Sprintf(`nav a[href$="/%s"][aria-current]`, name))))
}

// inbox opens the start page.
func (h hand) inbox() { h.Helper(); h.open(""); h.until("Waits for you") }

// found searches for a thread and opens it.
func (h hand) found(words, id string) {
	h.Helper()
	h.at("threads")
	h.write(`input[name="q"]`, words)
	h.press(`form[role="search"] button`)
	h.press(to(id))
	h.do(chromedp.WaitVisible(chromedp.CSS("#part-about")))
}

// more expands the other actions for a thread.
func (h hand) more() {
	h.Helper()
	h.press("#more > summary")
	h.do(chromedp.WaitVisible(chromedp.CSS("#more[open] button")))
}

// step opens a step's page.
func (h hand) step(n int) {
	h.Helper()
	part := fmt.Sprintf("#s%d", n)
	if !evaluate[bool](h.world, fmt.Sprintf("document.querySelector(%q).open", part)) {
		h.press(part + " > summary")
	}
	h.press(part + ` a[href*="/step/"]`)
	h.do(chromedp.WaitVisible(chromedp.CSS("#retry")))
}

// TestTasks performs user tasks with the mouse, and again with the keyboard alone, starting at the inbox each
// time.
func TestTasks(t *testing.T) {
	for name, keys := range map[string]bool{"mouse": false, "keyboard": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			all := newTeam(w, 60)
			w.serve("--actions")
			h := hand{w, keys}
			for _, task := range []struct {
				name string
				done func(hand, team)
			}{
				{"answer the thread that waits longest", answerOldest}, {"why did step 7 fail?", whyFailed}, {"what did this fork do otherwise?", whatOtherwise},
				{"what did reviewers cost last week?", whatCost}, {"stop what runs", stopIt}, {"do the last step again, told otherwise", pokeIt},
				{"fork from a step", forkIt}, {"take the last step back", undoIt}, {"apply what was made in a worktree", applyIt},
				{"find one of many by its words", findIt}, {"seal a thread and save it as a file", keepIt},
			} {
				t.Log(task.name)
				h.inbox()
				task.done(h, all)
				w.quiet()
			}
		})
	}
}

func answerOldest(h hand, t team) {
	require.Equal(h, t.oldest, evaluate[string](h.world, `document.querySelector('article.care a[href*="/thread/"]').pathname.match(/thread\/(\w{26})/)[1]`), "it is the first")
	h.press(to(t.oldest))
	h.press(`[data-answer] details summary`)
	h.write(`[name="field.comment"]`, "Ship it.")
	h.press(`[data-answer] details[open] button`)
	h.until("Released: Ship it.")
	h.status(t.oldest, "completed")
	h.status(t.newer, "suspended")
}

func whyFailed(h hand, t team) {
	h.press(to(t.failed))
	h.until("step 7, updater")
	require.Contains(h, h.text(), "the registry does not answer (503)")
}

func whatOtherwise(h hand, t team) {
	h.found("quick search", t.fork)
	h.press(`main a[href*="/diff?"]`)
	h.until("The first difference is at step 2")
	require.Contains(h, h.text(), "- Keep what was asked lately in memory.")
	require.Contains(h, h.text(), "+ Build an index at night.")
}

func whatCost(h hand, _ team) {
	h.at("stats")
	h.write(`select[name="since"]`, "7")
	h.tick(`input[name="by"][value="workflow"]`)
	h.tick(`input[name="by"][value="role"]`)
	h.press("main form button")
	h.until("reviewer")
	row := evaluate[string](h.world, `[...document.querySelectorAll('tbody tr')].map((r) => r.innerText).find((t) => t.includes('reviewer'))`)
	require.Contains(h, row, "0.25")
}

func stopIt(h hand, t team) {
	h.press(to(t.runs))
	h.press(`form[action$="/stop"] button`)
	h.until("Continue")
	h.status(t.runs, "idle")
}

func pokeIt(h hand, t team) {
	h.found("quick search", t.plan)
	before := h.head(t.plan)
	h.more()
	h.write(`form[action$="/retry"] textarea`, "Think of what it costs.")
	h.press(`form[action$="/retry"] button`)
	h.moved(t.plan, before)
	h.status(t.plan, "completed")
	h.until("completed")
}

func forkIt(h hand, t team) {
	h.found("quick search", t.plan)
	h.step(1)
	h.press("#retry > summary")
	h.press(`form[action$="/fork"] button`)
	h.until("fork of")
	require.NotContains(h, []string{t.plan, t.fork, ""}, h.here())
}

func undoIt(h hand, t team) {
	h.found("quick search", t.plan)
	h.more()
	h.press(`form[action$="/undo"] button`)
	h.steps(1)
	h.status(t.plan, "idle")
}

func applyIt(h hand, t team) {
	h.found("median", t.fix)
	h.more()
	h.write(`input[name="branch"]`, "better")
	h.press(`form[action$="/apply"] button`)
	h.until("Done")
	require.Contains(h, t.git("show", "better:median.go"), "if n%2 == 1")
}

func findIt(h hand, t team) {
	h.found("zebra farm", t.needle)
	require.Contains(h, h.text(), "Check the invoices of the zebra farm")
}

func keepIt(h hand, t team) {
	dir := h.TempDir()
	_, err := chromedp.Call(h.ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: dir})
	require.NoError(h, err)
	h.found("median", t.fix)
	h.press(`main a[download][href$="/run.html"]`)
	file := filepath.Join(dir, t.fix+".html")
	require.Eventually(h, func() bool {
		data, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(data), "</html>")
	}, patience, pause)
	h.more()
	h.press(`form[action$="/seal"] button`)
	h.until("Done")
	require.Regexp(h, `[0-9a-f]{64}`, h.text())
}
