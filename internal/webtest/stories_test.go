//go:build browser

package webtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// Five stories of a user who has never used the command line, all in one home.
func TestStories(t *testing.T) {
	w := newWorld(t)
	o := newOffice(w)
	w.serve("--actions")
	for _, story := range []struct {
		name string
		told func(office)
	}{
		{"answer three decisions with the keyboard", decideWithTheKeyboard},
		{"start a run from a form and watch it to its end", startAndWatch},
		{"find out why a run failed and retry it", explainAndRetry},
		{"compare two runs", compareTwo},
		{"answer three decisions on a phone", decideOnAPhone},
	} {
		ok := t.Run(story.name, func(t *testing.T) {
			inner := o
			inner.world = w.within(t)
			began := time.Now()
			story.told(inner)
			inner.quiet()
			t.Logf("%.1f s", time.Since(began).Seconds())
		})
		if !ok {
			t.Log(w.text())
		}
	}
}

// within is the world of a subtest: it has the same home, server and browser.
func (w *world) within(t *testing.T) *world {
	inner := &world{T: t, bin: w.bin, home: w.home, base: w.base, server: w.server, ctx: w.ctx, pictures: w.pictures}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.complain = nil
	inner.outer = w
	return inner
}

// expectRefused checks that the browser has logged that a form was rejected, and nothing else, and forgets it.
func (w *world) expectRefused() {
	w.Helper()
	of := w.outer
	require.Eventually(w, func() bool {
		of.mu.Lock()
		defer of.mu.Unlock()
		return len(of.complain) == 1 && strings.Contains(of.complain[0], "422")
	}, patience, pause)
	of.mu.Lock()
	defer of.mu.Unlock()
	of.complain = nil
}

// key presses a key.
func (w *world) key(keys string) { w.Helper(); w.do(chromedp.KeyEvent(keys)) }

// focused returns the text of the focused element.
func (w *world) focused() string {
	w.Helper()
	return evaluate[string](w, `(document.activeElement?.innerText || document.activeElement?.labels?.[0]?.innerText || "").trim()`)
}

// tabToText presses Tab until the focused element's text begins with the words. The focus must be visible.
func (w *world) tabToText(words string) {
	w.Helper()
	var seen []string
	for range 60 {
		now := w.focused()
		if strings.HasPrefix(now, words) {
			require.True(w, evaluate[bool](w, "getComputedStyle(document.activeElement).outlineStyle !== 'none'"), "the focus on %q is invisible", words)
			return
		}
		seen = append(seen, now)
		w.key(kb.Tab)
	}
	w.Fatalf("no Tab leads to %q, only to %q", words, seen)
}

// choose moves with j to the card of a thread.
func (w *world) choose(id string) {
	w.Helper()
	at := fmt.Sprintf(`!!document.activeElement.closest('[data-item]')?.querySelector('a[href*="/thread/%s"]')`, id)
	for range 40 {
		if evaluate[bool](w, at) {
			return
		}
		w.key("j")
	}
	w.Fatalf("j never reaches the card of %s", id)
}

// answered waits until a decision is no longer in the inbox, and checks that the user is still there.
func (w *world) answered(id string) {
	w.Helper()
	w.do(chromedp.WaitVisible(chromedp.CSS("#part-waiting")))
	require.Eventually(w, func() bool {
		return evaluate[bool](w, fmt.Sprintf(`!!document.querySelector('#part-waiting') && !document.querySelector('#part-waiting article a[href$="/thread/%s"]')`, id))
	}, patience, pause, "the card of %s stays", id)
	require.Empty(w, w.here(), "an answer returns to the inbox")
}

func decideWithTheKeyboard(o office) {
	o.screen(1280, false)
	o.open("")

	// The card shows what is asked and the choices; the choice that needs a text opens its field.
	o.choose(o.oldest)
	o.key("a")
	o.tabToText("approved")
	o.key(kb.Enter)
	o.tabToText("comment")
	o.key("Ship it.")
	o.tabToText("Answer approved")
	o.key(kb.Enter)
	o.answered(o.oldest)

	o.choose(o.announce)
	o.key("a")
	o.tabToText("publish")
	o.key(kb.Enter)
	o.answered(o.announce)

	o.choose(o.ship)
	o.key("a")
	o.tabToText("drop")
	o.key(kb.Enter)
	o.answered(o.ship)

	o.status(o.oldest, "completed")
	o.status(o.announce, "completed")
	o.status(o.ship, "completed")
	o.key("?")
	o.do(chromedp.WaitVisible(chromedp.CSS("dialog[open]")))
	o.accessible("the list of keys")
	o.key(kb.Escape)
}

func startAndWatch(o office) {
	o.open("")
	o.play("repeat: true\nsteps:\n  - turns:\n      - { say: I read the commits since the last version., delay: 500ms }\n      - { tool: run_command, args: { command: git log --oneline }, result: a1b2c3d Exports in parallel, delay: 1s }\n    output: Exports are faster.\n    delay: 1s\n    usage: { inputTokens: 9000, outputTokens: 400, costUsd: 0.04 }\n")
	o.tap("header", "Start a run")
	o.do(chromedp.Focus(chromedp.CSS(`select[name="workflow"]`)))
	o.key("changelog")
	o.tap("main", "Choose")
	o.do(chromedp.WaitVisible(chromedp.CSS(`textarea[name="task"]`)), chromedp.SendKeys(chromedp.CSS(`textarea[name="task"]`), "Mention the exports."))
	require.Contains(o, o.text(), "Writes the changelog of a version.")
	o.do(chromedp.SendKeys(chromedp.CSS(`[name="input.version"]`), "2.4"))
	o.tap("main", "Check first")
	o.do(chromedp.WaitVisible(chromedp.CSS(".card.bad"))) // a wrong value is reported, and what was filled in stays
	o.expectRefused()
	require.Equal(o, "Mention the exports.", evaluate[string](o.world, `document.querySelector('[name="task"]').value`))
	evaluate[string](o.world, `document.querySelector('[name="input.version"]').value = ""`)
	o.do(chromedp.SendKeys(chromedp.CSS(`[name="input.version"]`), "v2.4"))
	o.tap("main", "Check first")
	o.until("Ready to start")
	o.until("Write the changelog of v2.4 for users. Mention the exports.")
	o.accessible("a dry run")
	o.tap("main", "Start the run")
	o.do(chromedp.WaitVisible(chromedp.CSS("h1")))
	if strings.Contains(o.text(), "Let them run") { // the project's workflow runs commands
		o.tap("main", "Let them run")
	}
	o.do(chromedp.WaitVisible(chromedp.CSS("#part-about")))
	evaluate[bool](o.world, "window.same = true")
	o.until("I read the commits since the last version.")
	o.until("Exports are faster.")
	o.until("The changelog of v2.4 is written.")
	o.until("completed")
	o.until("$0.04")
	require.True(o, evaluate[bool](o.world, "window.same === true"), "the page was not loaded again")
	o.accessible("a finished run")
}

func explainAndRetry(o office) {
	o.open("")
	card := evaluate[string](o.world, fmt.Sprintf(`document.querySelector('#part-waiting article a[href$="/thread/%s"]').closest('article').innerText`, o.failed))
	require.Contains(o, card, "the registry does not answer (503)", "the card gives the reason")
	o.tap(fmt.Sprintf(`#part-waiting article:has(a[href$="/thread/%s"]) h3`, o.failed), "Update all packages")
	o.do(chromedp.WaitVisible(chromedp.CSS("#part-about")))
	o.until("the registry does not answer (503)")
	require.Contains(o, o.text(), "step 7")
	o.accessible("a failed run")
	o.play("repeat: true\nsteps:\n  - { value: { $status: done }, usage: { inputTokens: 5000, outputTokens: 100, costUsd: 0.02 } }\n")
	o.tap("main", "Continue|Retry")
	o.until("completed")
	o.status(o.failed, "completed")
}

func compareTwo(o office) {
	o.open("")
	o.tap("nav", "Compare")
	for name, id := range map[string]string{"a": o.plan, "b": o.fork} {
		o.do(chromedp.WaitVisible(chromedp.CSS(fmt.Sprintf(`[name=%q]`, name))))
		evaluate[bool](o.world, fmt.Sprintf(`(() => { const f = document.querySelector('[name=%q]'); f.value = %q; return f.value === %q })()`, name, id, id))
	}
	o.tap("main", "Compare")
	o.until("The first difference is at step 2")
	require.Contains(o, o.text(), "Keep what was asked lately in memory.")
	require.Contains(o, o.text(), "Build an index at night.")
	o.accessible("a comparison")
}

func decideOnAPhone(o office) {
	o.screen(390, false)
	defer o.screen(1280, false)
	o.open("")
	o.narrow("the inbox")
	decide := func(id string, fill func()) {
		card := fmt.Sprintf(`#part-waiting article:has(a[href$="/thread/%s"])`, id)
		o.tap(card+" h3", "")
		o.do(chromedp.WaitVisible(chromedp.CSS("#part-act")))
		o.narrow("thread " + id)
		bottom := evaluate[int](o.world, `(() => { scrollTo(0, 0); return Math.ceil(Math.max(...[...document.querySelectorAll('[data-answer] :is(button, summary, select, textarea, input:not([type=hidden]))')].filter((e) => e.offsetParent).slice(0, 1).map((e) => e.getBoundingClientRect().bottom))) })()`)
		require.LessOrEqual(o, bottom, 844, "the decision of %s is in the first screen", id)
		fill()
	}
	decide(o.newer, func() {
		o.tap("[data-answer]", "rejected")
		o.do(chromedp.SendKeys(chromedp.CSS(`[data-answer] details[open] [name="field.comment"]`), "Not on a Friday."))
		o.tap("[data-answer] details[open]", "Answer rejected")
		o.until("→ rejected") // its details are closed if the next step has ended, too
		read, err := o.command("thread", "read", o.newer).Output()
		require.NoError(o, err)
		require.Contains(o, string(read), "Not on a Friday.")
	})
	o.open("")
	decide(o.triage, func() {
		o.do(chromedp.Focus(chromedp.CSS(`[data-answer] [name="field.severity"]`)), chromedp.KeyEvent("h"))
		o.do(chromedp.SendKeys(chromedp.CSS(`[data-answer] [name="field.assignee"]`), "Ada"))
		o.tap("[data-answer], form:has([data-answer])", "Answer")
		o.status(o.triage, "completed")
	})
	o.open("")
	decide(o.question, func() {
		before := o.head(o.question)
		o.script(map[string]any{"output": "Ported."}, map[string]any{"output": "Ported; an empty list is an error."},
			map[string]any{"value": map[string]any{"$status": "approved", "why": "It is tested."}})
		o.do(chromedp.SendKeys(chromedp.CSS(`[data-answer] textarea`), "An error, please."))
		o.tap("[data-answer]", "Answer")
		o.moved(o.question, before)
	})
}

// tap clicks the first visible link or button of a part whose text is or begins with one of the words.
func (w *world) tap(part, words string) {
	w.Helper()
	find := fmt.Sprintf(`(() => { document.querySelectorAll('[data-tapped]').forEach((e) => delete e.dataset.tapped);
		const words = %q.split('|'); const all = [...document.querySelectorAll(%q)].flatMap((p) => [...p.querySelectorAll('a[href], button, summary')]).filter((e) => e.offsetParent && !e.disabled);
		const text = (e) => e.innerText.trim(); const found = all.find((e) => words.includes(text(e))) || all.find((e) => words.some((w) => text(e).startsWith(w)));
		if (found) found.dataset.tapped = ''; return !!found })()`, words, part)
	for range 5 { // a live page can replace the element between the two
		require.Eventually(w, func() bool { return evaluate[bool](w, find) }, patience, pause, "%s has no %q:\n%s", part, words, w.text())
		if evaluate[bool](w, "!!document.querySelector('[data-tapped]')") {
			break
		}
	}
	w.do(chromedp.Click(chromedp.CSS("[data-tapped]")))
}

// narrow checks that nothing is wider than the screen, and that no table hides a column.
func (w *world) narrow(page string) {
	w.Helper()
	require.Zero(w, evaluate[int](w, "document.documentElement.scrollWidth - document.documentElement.clientWidth"), "%s is wider than the screen", page)
	cut := evaluate[[]string](w, `[...document.querySelectorAll('td, th')].filter((e) => e.offsetParent && e.getBoundingClientRect().right > innerWidth + 1).map((e) => e.innerText)`)
	require.Empty(w, cut, "%s hides cells", page)
}
