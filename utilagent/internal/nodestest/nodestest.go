// Package nodestest lets our tests read the nodes that an agent stored.
package nodestest

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
)

// Of opens the store of a thread.
func Of(t testing.TB, th *agentkittest.Thread) cas.Store {
	t.Helper()
	store, err := fsstore.Open(t.Context(), filepath.Join(th.Home, "cas"), fsstore.Options{Home: th.Home})
	require.NoError(t, err)
	return store
}
