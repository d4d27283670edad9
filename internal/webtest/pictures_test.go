//go:build browser

package webtest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// picturesDir is the environment variable with the directory for the pictures in the docs.
const picturesDir = "UWF_WEBTEST_PICTURES"

// TestPictures takes the screenshots in the README and the docs; `make web-pictures` copies them there.
func TestPictures(t *testing.T) {
	w := newWorld(t)
	all := newTeam(w, 12)
	w.serve()
	dir := os.Getenv(picturesDir)
	if dir == "" {
		dir = w.pictures
	}
	for _, p := range []struct {
		name, path string
		dark       bool
		height     int64
	}{
		{"inbox", "", false, 720}, {"thread", "thread/" + all.fix, true, 1100},
		{"compare", "diff?a=" + all.plan + "&b=" + all.fork, false, 620}, {"costs", "stats?by=workflow&by=role", true, 640},
	} {
		w.screen(1100, p.dark)
		w.do(chromedp.EmulateViewport(1100, p.height))
		w.open(p.path)
		evaluate[bool](w, fmt.Sprintf(`(() => { const all = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT); while (all.nextNode()) all.currentNode.data = all.currentNode.data.replaceAll(%q, "~/stats"); return true })()`, w.home))
		data, err := chromedp.Run(w.ctx, chromedp.CaptureScreenshot())
		require.NoError(t, err)
		require.Less(t, len(data), 200<<10, "it is to be small")
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("web-%s.png", p.name)), data, 0o644))
	}
	w.quiet()
}
