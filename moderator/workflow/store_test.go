package workflow_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

func TestStorePutsEachSchemaUnderATitle(t *testing.T) {
	t.Parallel()
	def, err := parse(base(t, "    meta:\n      type: object\n", "    meta:\n      title: my own\n      type: object\n"))
	require.NoError(t, err)
	var order []string
	titles := map[string]any{}
	hashes := map[string]protocol.Hash{"planner": "0000000000001", "worker": "0000000000002"}
	stored, err := def.Store(func(role string, schema any) (protocol.Hash, error) {
		order = append(order, role)
		titles[role] = schema.(map[string]any)["title"]
		return hashes[role], nil
	})
	require.NoError(t, err)
	require.Equal(t, []string{"planner", "worker"}, order)
	require.Equal(t, map[string]any{"planner": "base.planner", "worker": "my own"}, titles)
	require.Equal(t, hashes["planner"], stored.Roles["planner"].Frontmatter)
	require.Equal(t, hashes["worker"], stored.Roles["worker"].Frontmatter)
	require.NoError(t, stored.Validate())

	require.Empty(t, def.Roles["planner"].Frontmatter, "the definition stays as it was")
	require.NotContains(t, def.Schemas["planner"], "title")
}

func TestStoreNamesFailedSchema(t *testing.T) {
	t.Parallel()
	def, err := parse(base(t))
	require.NoError(t, err)
	full := errors.New("disk full")
	_, err = def.Store(func(string, any) (protocol.Hash, error) { return "", full })
	require.ErrorIs(t, err, full)
	prosetest.Error(t, err)
}

func TestStoredFormReadsBack(t *testing.T) {
	t.Parallel()
	def, err := parse(base(t))
	require.NoError(t, err)
	stored, err := def.Store(func(string, any) (protocol.Hash, error) { return "0000000000001", nil })
	require.NoError(t, err)
	text, err := json.Marshal(stored)
	require.NoError(t, err)
	var back protocol.Workflow
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, stored, back)
}
