package answerlink_test

import (
	"crypto/rand"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine/answerlink"
)

const (
	thread = "06FBZXRDS10W7W0C8X5KCE0GXG"
	head   = "44P8EP6N3NXZ5"
)

// A link states what it allows, works once, and expires. A changed link, or one signed with another key, is
// invalid.
func TestLinks(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_000)
	l := answerlink.Links{Dir: filepath.Join(t.TempDir(), "notify")}
	_, err := l.Check("x.y", now)
	require.ErrorIs(t, err, answerlink.ErrForged, "none was made")
	word, err := l.New(t.Context(), rand.Reader, thread, head, now.Add(time.Hour))
	require.NoError(t, err)
	info, err := os.Stat(filepath.Join(l.Dir, "key"))
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm()&0o077)

	c, err := l.Check(word, now)
	require.NoError(t, err)
	require.Equal(t, thread, c.Thread)
	require.EqualValues(t, head, c.Head)
	claim, signature, _ := strings.Cut(word, ".")
	plain, err := base64.RawURLEncoding.DecodeString(claim)
	require.NoError(t, err)
	longer := base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(string(plain), `"e":1`, `"e":9`, 1)))
	other := answerlink.Links{Dir: t.TempDir()}
	elsewhere, err := other.New(t.Context(), rand.Reader, thread, head, now.Add(time.Hour))
	require.NoError(t, err)
	for name, forged := range map[string]string{
		"nothing": "", "no signature": claim, "an empty one": claim + ".", "another end": longer + "." + signature,
		"another home": elsewhere, "with more": word + ".x", "twice as long": word + word, "very long": strings.Repeat("x", 1<<20),
		"another spelling": word[:len(word)-1] + string(word[len(word)-1]+1),
	} {
		_, err := l.Check(forged, now)
		require.ErrorIs(t, err, answerlink.ErrForged, name)
	}
	_, err = l.Check(word, now.Add(time.Hour))
	require.ErrorIs(t, err, answerlink.ErrLate)

	var took atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if l.Use(c, now) == nil {
				took.Add(1)
			}
		})
	}
	all.Wait()
	require.EqualValues(t, 1, took.Load())
	_, err = l.Check(word, now)
	require.ErrorIs(t, err, answerlink.ErrUsed)
	require.NoError(t, l.Unuse(c))
	_, err = l.Check(word, now)
	require.NoError(t, err, "the answer was none")

	require.NoError(t, l.Use(c, now))
	second, err := l.New(t.Context(), rand.Reader, thread, head, now.Add(3*time.Hour))
	require.NoError(t, err)
	later, err := l.Check(second, now.Add(2*time.Hour))
	require.NoError(t, err)
	require.NoError(t, l.Use(later, now.Add(2*time.Hour)))
	marks, err := os.ReadDir(filepath.Join(l.Dir, "used"))
	require.NoError(t, err)
	require.Len(t, marks, 1, "the mark of the one that has ended is swept")
	_, err = l.Check(word, now.Add(2*time.Hour))
	require.ErrorIs(t, err, answerlink.ErrLate)
}
