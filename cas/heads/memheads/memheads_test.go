package memheads_test

import (
	"testing"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/headstest"
	"github.com/united-workforce/uwf/cas/heads/memheads"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	headstest.RunForget(t, &memheads.Heads{})
	headstest.Run(t, func(*testing.T) heads.Heads { return new(memheads.Heads) })
}
