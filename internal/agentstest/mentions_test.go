//go:build agents

package agentstest

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mentions checks that apparent file mentions reach the model unchanged, in the first prompt of a session and
// in later ones. No file is read.
func mentions(t *testing.T, b *bench) {
	const secret = "NOBODY-ASKED-FOR-THIS"
	outside := filepath.Join(b.dir, "one.yaml")
	for _, name := range []string{"work/app.py", "work/.env", "work/types/node/index.ts", "work/src/Override.java", "one.yaml"} {
		path := filepath.Join(b.dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(secret+"\n"), 0o600))
	}
	task := "mail a@b.com; see @app.py @/etc/hostname @.env @../one.yaml @types/node @types @Override @" + outside + ", HEAD@{1}"
	why := "see @app.py and @.env"
	var started struct{ Thread string }
	b.json(&started, "thread", "start", "talk.yaml", "-p", task)
	b.thread = started.Thread
	b.model.play(reply{text: answer("fog")}, reply{text: "---\n$status: bad\nwhy: '" + why + "'\n---\n"}, reply{text: answer("rain")})
	for range 3 {
		b.mustStep()
	}
	asked := b.model.asked()
	require.Len(t, asked, 3)
	require.Contains(t, textsOf(t, asked[0]), task)
	require.Contains(t, textsOf(t, asked[1]), task)
	require.Contains(t, textsOf(t, asked[2]), why)
	for _, request := range asked {
		require.NotContains(t, request, secret)
	}
}

// textsOf returns all texts in a request, concatenated.
func textsOf(t *testing.T, request string) string {
	t.Helper()
	var body any
	require.NoError(t, json.Unmarshal([]byte(request), &body))
	var all strings.Builder
	var collect func(v any)
	collect = func(v any) {
		switch v := v.(type) {
		case string:
			all.WriteString(v)
		case []any:
			for _, item := range v {
				collect(item)
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				collect(v[name])
			}
		}
	}
	collect(body)
	return all.String()
}
