package remote_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
)

// Invalid swaps are refused before the store is accessed.
func TestSwapIsChecked(t *testing.T) {
	t.Parallel()
	const id, a, b = "01M82BR31CYXCBBS3FCV5N9W8S", protocol.Hash("7S7A65K36J5TM"), protocol.Hash("2B9RTXYM6G8V6")
	long := strings.Repeat("x", remote.MaxFacts)
	for name, c := range map[string]struct {
		swap remote.Swap
		ok   bool
	}{
		"a new thread":                {remote.Swap{Thread: id, Head: a}, true},
		"a step":                      {remote.Swap{Thread: id, Was: a, Head: b}, true},
		"a step under a lease":        {remote.Swap{Thread: id, Was: a, Head: b, Fence: 1}, true},
		"one that has ended":          {remote.Swap{Thread: id, Was: a, WasEnded: true, Head: b}, true},
		"no thread":                   {remote.Swap{Head: a}, false},
		"no thread's id":              {remote.Swap{Thread: "x", Head: a}, false},
		"no head":                     {remote.Swap{Thread: id}, false},
		"no hash":                     {remote.Swap{Thread: id, Head: "x"}, false},
		"no hash before":              {remote.Swap{Thread: id, Was: "x", Head: a}, false},
		"a new one that has ended":    {remote.Swap{Thread: id, WasEnded: true, Head: a}, false},
		"a new one under a lease":     {remote.Swap{Thread: id, Head: a, Fence: 1}, false},
		"a lease of before the first": {remote.Swap{Thread: id, Was: a, Head: b, Fence: -1}, false},
		"an end without a workflow":   {remote.Swap{Thread: id, Was: a, Head: b, Ended: &remote.Ended{Status: protocol.StatusCancelled}}, false},
		"facts that are too long":     {remote.Swap{Thread: id, Head: a, Facts: heads.Facts{Title: &long}}, false},
	} {
		err := c.swap.Check()
		if c.ok {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorAs(t, err, new(*remote.FaultError), name)
	}
}
