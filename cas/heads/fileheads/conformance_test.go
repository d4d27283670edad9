package fileheads_test

import (
	"testing"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/heads/headstest"
	"github.com/united-workforce/uwf/util/durable"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	headstest.RunForget(t, fileheads.Open(t.TempDir(), durable.OS()))
	headstest.Run(t, func(t *testing.T) heads.Heads { return fileheads.Open(t.TempDir(), durable.OS()) })
}
