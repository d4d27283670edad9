package fsstore_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/record"
)

// A reader in another language, written from docs/storage.md alone, sees what we see: in segments, sealed or
// not, in packs, and where a power cut has torn a record.
func TestReaderInPython(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is needed")
	}
	ctx, dir, home := t.Context(), filepath.Join(t.TempDir(), "cas"), t.TempDir()
	s := open(t, dir, fsstore.Options{Home: home})
	all := nodes(t, cas.XXH3, 12)
	all = append(all, castest.Node(t, cas.XXH3, map[string]any{"é": []any{nil, true, -7, 1.5, "x"}, "big": strings.Repeat("x", 300_000)}))
	require.NoError(t, s.Commit(ctx, all[:6]...))
	require.NoError(t, s.KeepSeals(ctx, map[cas.Hash]cas.Seal{all[0].Hash: {1}, all[1].Hash: {2}}))
	compact(t, s)
	require.NoError(t, s.Commit(ctx, all[6:10]...))
	sealed(t, dir)
	require.NoError(t, s.Commit(ctx, all[10:]...))
	require.NoError(t, s.Redact(ctx, func() error { return nil }, cas.Tombstone{Hash: all[2].Hash, Type: all[2].Type, Reason: "why"}))
	_, err = s.Quarantine(ctx, all[3].Hash)
	require.NoError(t, err)
	castest.Forge(t, dir, record.Node, all[4].Hash.Number(), make([]byte, 40))

	read := func(args ...string) string {
		script := filepath.Join("..", "..", "examples", "store", "read_store.py")
		out, err := exec.Command(python, append([]string{script, dir}, args...)...).Output()
		require.NoError(t, err, args)
		return string(out)
	}
	var want []string
	for h, err := range open(t, dir, fsstore.Options{}).All(ctx, "") {
		require.NoError(t, err)
		kind := " node"
		if h == all[2].Hash {
			kind = " tombstone"
		}
		want = append(want, string(h)+kind)
	}
	var got []string
	for line := range strings.Lines(read("list")) {
		fields := strings.Fields(line)
		got = append(got, fields[0]+" "+fields[1])
	}
	require.Equal(t, want, got)
	for _, i := range []int{0, 4, 7, 11, 12} {
		var shown struct {
			Type      cas.Hash `json:"type"`
			Payload   any      `json:"payload"`
			Timestamp int64    `json:"timestamp"`
		}
		require.NoError(t, json.Unmarshal([]byte(read("get", string(all[i].Hash))), &shown))
		payload, err := cas.Encode(shown.Payload)
		require.NoError(t, err)
		require.Equal(t, all[i], cas.Node{Hash: cas.XXH3.Sum(shown.Type, payload), Type: shown.Type, Payload: payload, Timestamp: shown.Timestamp})
	}
	require.Contains(t, read("get", string(all[2].Hash)), `"reason": "why"`)
	require.Equal(t, 2, strings.Count(read("seals"), "\n"))
	require.Contains(t, read("seals"), string(all[0].Hash)+" "+cas.Seal{1}.String())
	require.Equal(t, home+"\n", read("homes"))

	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "store", "read_store.py"))
	require.NoError(t, err)
	require.LessOrEqual(t, strings.Count(string(text), "\n"), 200)
}
