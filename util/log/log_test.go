package log_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/log"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/secret"
)

func now() time.Time { return time.UnixMilli(1_780_000_000_000) }

func lines(t *testing.T, dir string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, log.File))
	require.NoError(t, err)
	var all []map[string]any
	for line := range bytes.SplitSeq(bytes.TrimSpace(data), []byte("\n")) {
		var v map[string]any
		require.NoError(t, json.Unmarshal(line, &v), "%s", line)
		all = append(all, v)
	}
	return all
}

func TestLinesAreCleanAndWithoutSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := log.New(dir, secret.NewSet("sk-live-0123456789"), now)
	require.NoFileExists(t, filepath.Join(dir, log.File), "nothing was said")
	l.Info("key \x1b[31msk-live-0123456789", "session", "s1",
		"err", errors.New("401: sk-live-0123456789"), "list", []string{"sk-live-0123456789"}, "sk-live-0123456789", 1, "long", strings.Repeat("x", 9000))
	got := lines(t, dir)
	require.Len(t, got, 1)
	require.Equal(t, "2026-05-28T20:26:40Z", got[0]["time"])
	require.Equal(t, "key [hidden key]", got[0]["msg"])
	require.Equal(t, "401: [hidden key]", got[0]["err"])
	require.Equal(t, "s1", got[0]["session"])
	require.Len(t, got[0]["long"], 2000+len("…"))
	data, err := os.ReadFile(filepath.Join(dir, log.File))
	require.NoError(t, err)
	require.NotContains(t, string(data), "sk-live")
}

func TestALogIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			l := log.New(dir, nil, now)
			for range 300 {
				l.Info("again", "text", strings.Repeat("ä", 900))
			}
		})
	}
	all.Wait()
	info, err := os.Stat(filepath.Join(dir, log.File))
	require.NoError(t, err)
	require.LessOrEqual(t, info.Size(), int64(1<<20+8<<10), "four at once may each add one line more")
	got := lines(t, dir)
	prosetest.Text(t, got[len(got)-1]["msg"])
}

// A log that can't be written doesn't interrupt work.
func TestALogThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	log.New("", nil, now).Info("x")
	log.New(filepath.Join(t.TempDir(), "none"), nil, now).Info("x")
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "mine")
	require.NoError(t, os.WriteFile(other, []byte("mine"), 0o600))
	if os.Symlink(other, filepath.Join(dir, log.File)) == nil {
		log.New(dir, nil, now).Info("x")
		data, err := os.ReadFile(other)
		require.NoError(t, err)
		require.Equal(t, "mine", string(data), "a link is not followed")
	}
}
