package main

import "testing"

// A mutant whose text has moved on catches nothing.
func TestMutantsStillApply(t *testing.T) {
	t.Parallel()
	for _, m := range mutants() {
		if _, _, err := m.changed("../../.."); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}
