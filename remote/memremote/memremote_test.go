package memremote_test

import (
	"testing"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/memremote"
	"github.com/united-workforce/uwf/remote/remotetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	remotetest.Run(t, func(_ *testing.T, a cas.Algorithm) remotetest.Open {
		r := memremote.New(a, nil)
		return func(testing.TB) remote.Remote { return r }
	})
}
