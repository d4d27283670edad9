//go:build browser

package webtest

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// A notified person answers a question from the link, once, and can go to no other page.
func TestAnswerFromALink(t *testing.T) {
	w := newWorld(t)
	told := filepath.Join(w.home, "told")
	config := filepath.Join(w.home, "uwf", "config.yaml")
	before, err := os.ReadFile(config)
	require.NoError(t, err)
	notify := "notify:\n  on: [waiting]\n  command: [sh, -c, 'cat > \"$0.new\"; mv \"$0.new\" \"$0\"', " + told + "]\n  links: { address: http://localhost:1 }\n"
	require.NoError(t, os.WriteFile(config, append(before, notify...), 0o600))
	id := w.uwf("run", "./release.yaml", "-p", "version 6 <script>alert(6)</script>")
	var notice struct{ Thread, Link string }
	require.Eventually(t, func() bool {
		data, err := os.ReadFile(told)
		return err == nil && json.Unmarshal(data, &notice) == nil
	}, patience, 20*time.Millisecond)
	require.Equal(t, id, notice.Thread)
	w.serve("--actions")
	root, _, _ := strings.Cut(strings.TrimPrefix(w.base, "http://"), "/")
	link := strings.Replace(notice.Link, "localhost:1", root, 1)
	for _, width := range []int64{360, 1440} {
		for _, dark := range []bool{false, true} {
			w.screen(width, dark)
			w.do(chromedp.Navigate(link), chromedp.WaitVisible(chromedp.CSS("form.act")))
			w.accessible("an answer link")
		}
	}
	w.picture("link")
	require.Contains(t, w.text(), "version 6 <script>alert(6)</script>")
	w.do(chromedp.Focus(chromedp.CSS(`[name="field.$status"]`)), chromedp.KeyEvent("a"), chromedp.SendKeys(chromedp.CSS(`[name="field.comment"]`), "From the train"),
		chromedp.SendKeys(chromedp.CSS("#name"), "Ann"), chromedp.Click(chromedp.CSS("form.act button")))
	w.until("Thank you")
	w.accessible("what is said of an answer")
	w.quiet()
	w.uwf("thread", "wait", id)
	out, err := w.command("thread", "read", id).Output()
	require.NoError(t, err)
	require.Contains(t, string(out), "From the train")
	answer, err := http.Get(link)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusGone, answer.StatusCode)
}
