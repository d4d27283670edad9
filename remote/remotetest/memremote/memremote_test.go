package memremote_test

import (
	"testing"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/remotetest"
	"github.com/united-workforce/uwf/remote/remotetest/memremote"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	remotetest.Run(t, func(_ *testing.T, a cas.Algorithm) remotetest.Open {
		r := memremote.New(a, time.Now)
		return func(testing.TB) remote.Remote { return r }
	})
	remotetest.RunUpkeep(t, func(_ *testing.T, a cas.Algorithm) (remotetest.Open, remotetest.Upkeep) {
		r := memremote.New(a, time.Now)
		return func(testing.TB) remote.Remote { return r }, remotetest.Upkeep{
			Remove: r.Remove, Redact: func(thread string, h cas.Hash, reason string) error {
				return r.Redact(thread, cas.Tombstone{Hash: h, Type: r.Kinds().MetaHash(), Reason: reason, At: 1})
			},
		}
	})
}
