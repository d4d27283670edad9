//go:build browser

package webtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

const crowd = `name: crowd
description: Two hundred look at it.
roles:
  look: { description: Looks., run: ["true"] }
  all:
    description: All of them.
    each: { of: "[1..200]", role: look, prompt: "{{item}}" }
graph: { $START: { _: all }, all: { done: $END, failed: $END } }
`

// Large data is shown in part: the server needs little memory, and the browser is busy only briefly.
func TestVeryMuch(t *testing.T) {
	w := newWorld(t)
	word := strings.Repeat("A long word and another one. ", 10<<20/29)
	for name, text := range map[string]string{
		"crowd.yaml":  crowd,
		"script.yaml": "steps:\n  - turns: [{ say: \"" + word + "\" }]\n    value: { $status: done }\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(w.home, name), []byte(text), 0o600))
	}
	long := w.uwf("run", "./talk.yaml", "-p", "speak at length")
	many := w.uwf("run", "./crowd.yaml", "-p", "it")
	one := w.uwf("thread", "start", "./talk.yaml", "-p", "one of many")
	w.among(one, 100_000)
	w.serve("--actions")
	_, err := chromedp.Call(w.ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: "window.longest = 0; new PerformanceObserver((l) => { for (const e of l.getEntries()) window.longest = Math.max(window.longest, e.duration) }).observe({ type: 'longtask', buffered: true })",
	})
	require.NoError(t, err)
	_, err = chromedp.Call(w.ctx, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks})
	require.NoError(t, err)
	w.open("thread/" + long)
	step := evaluate[string](w, `document.querySelector('#part-steps a[href*="/step/"]').pathname`)
	for _, path := range []string{"", "threads", "threads?q=nothing+is+so", "thread/" + long, step[strings.Index(step, "thread/"):], "thread/" + many} {
		w.open(path)
		busy := w.busy()
		name, _, _ := strings.Cut(path, "/")
		t.Logf("%-25s %4.0f ms of the browser's time, the longest task %4.0f ms", name, 1000*busy, evaluate[float64](w, "window.longest"))
		require.Less(t, busy, 1.0, "seconds that the browser has computed for %s", path)
	}
	w.open("thread/" + many)
	require.Contains(t, w.text(), "200 completed")
	peak := w.peak()
	t.Logf("the server has needed %d MB at most", peak)
	require.Less(t, peak, 150)
	w.quiet()
}

// busy returns the CPU time of the page's thread in seconds.
func (w *world) busy() float64 {
	w.Helper()
	got, err := chromedp.Call(w.ctx, performance.GetMetrics, cdp.Empty{})
	require.NoError(w, err)
	for _, m := range got.Metrics {
		if m.Name == "TaskDuration" {
			return m.Value
		}
	}
	w.Fatal("the browser does not tell")
	return 0
}

// among adds many threads with the same head as a thread.
func (w *world) among(id string, n int) {
	w.Helper()
	path := filepath.Join(w.home, "uwf", "threads.yaml")
	own, err := os.ReadFile(path)
	require.NoError(w, err)
	at := strings.TrimPrefix(string(own[strings.Index(string(own), id):]), id)
	at, _, _ = strings.Cut(at, "\n")
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, "01ARZ3NDEKTSV4RRFF%08d%s\n", i, at)
	}
	require.NoError(w, os.WriteFile(path, append([]byte(all.String()), own...), 0o600))
}

// peak returns the server's peak memory, in MB.
func (w *world) peak() int {
	w.Helper()
	out, err := exec.Command("pgrep", "-P", strconv.Itoa(w.server)).Output()
	require.NoError(w, err)
	status, err := os.ReadFile("/proc/" + strings.TrimSpace(string(out)) + "/status")
	require.NoError(w, err)
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	var kib int
	_, err = fmt.Sscan(after, &kib)
	require.NoError(w, err)
	return kib >> 10
}

// New text appears on the page soon. The delay depends on the machine's load, so it is logged and not
// checked.
func TestHowSoon(t *testing.T) {
	w := newWorld(t)
	count := "name: count\ndescription: Counts.\nroles: { count: { description: Counts., run: [sh, -c, 'for i in 1 2 3 4 5 6 7 8 9; do date +at-%s%3N; sleep 0.5; done'] } }\ngraph: { $START: { _: count }, count: { passed: $END, failed: $END } }\n"
	require.NoError(t, os.WriteFile(filepath.Join(w.home, "count.yaml"), []byte(count), 0o600))
	id := w.uwf("thread", "start", "./count.yaml", "-p", "it")
	w.serve()
	w.open("thread/" + id)
	w.until("live")
	evaluate[bool](w, `(() => { window.seen = {}; new MutationObserver(() => { for (const [, at] of document.querySelector('#part-flight').innerText.matchAll(/at-(\d+)/g)) window.seen[at] ??= Date.now() - at })
		.observe(document.body, { subtree: true, childList: true, characterData: true }); return true })()`)
	w.uwf("thread", "step", id, "--background")
	w.until("completed")
	took := evaluate[[]int](w, "Object.values(window.seen)")
	require.NotEmpty(t, took)
	slices.Sort(took)
	t.Logf("on the page after %d ms at the median of %d, %d at most", took[len(took)/2], len(took), took[len(took)-1])
	w.quiet()
}
