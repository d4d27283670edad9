package threadid_test

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/threadid"
)

// Children have distinct valid ids with their parent's time that sort below it.
func TestChild(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_800_000_000_000)
	for range 20 {
		parent, err := threadid.New(now, rand.Reader)
		require.NoError(t, err)
		seen := map[string]bool{}
		add := func(head, role string, attempt int, key string) string {
			id, err := threadid.Child(parent, head, role, attempt, key)
			require.NoError(t, err)
			require.True(t, threadid.Valid(id), id)
			require.Less(t, id, parent)
			require.Negative(t, threadid.Compare(id, parent), "@ stays on the parent")
			at, err := threadid.Time(id)
			require.NoError(t, err)
			require.True(t, now.Equal(at))
			require.False(t, seen[id], id)
			seen[id] = true
			return id
		}
		for i := range 500 {
			add("HEAD", "role", 0, fmt.Sprint(i))
		}
		add("HEAD", "role", 1, "1")
		add("HEAD", "rol", 0, "e1")
		child := add("HEAD2", "role", 0, "1")
		again, err := threadid.Child(parent, "HEAD2", "role", 0, "1")
		require.NoError(t, err)
		require.Equal(t, child, again)
		below, err := threadid.Child(child, "HEAD2", "role", 0, "1")
		require.NoError(t, err)
		require.Less(t, below, child)
	}
	// Ids of the original have a different time.
	child, err := threadid.Child("06FFJC4XWDCZ8TQ4BX3N6KPRM0", "H", "r", 0, "k")
	require.NoError(t, err)
	require.Negative(t, threadid.Compare(child, "06FFJC4XWDCZ8TQ4BX3N6KPRM0"))
	_, err = threadid.Child("x", "H", "r", 0, "k")
	require.ErrorIs(t, err, threadid.ErrInvalid)
}
