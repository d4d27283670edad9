package cas_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/protocol"
)

// Only uwf can create a schema that looks like one of its own.
func TestTitlesOfOurs(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := cas.NewBatch(castest.NewStore(t, cas.XXH3), time.Now)
	for _, title := range []string{"@uwf/step", "@uwf/step.2", "@uwf/", "@uwf/mine"} {
		_, err := b.AddSchema(ctx, map[string]any{"title": title, "type": "object"})
		require.ErrorIs(t, err, &protocol.Error{Code: protocol.CodeInvalid}, title)
	}
	for _, title := range []string{"uwf/step", "@ocas/string", "step"} {
		_, err := b.AddSchema(ctx, map[string]any{"title": title, "type": "object"})
		require.NoError(t, err, title)
	}
	for _, typ := range protocol.Types() {
		value, err := b.Kinds().Schema(typ).Value()
		require.NoError(t, err)
		h, err := b.AddSchema(ctx, value)
		require.NoError(t, err)
		require.Equal(t, b.Kinds().Schema(typ).Hash, h)
	}
}
