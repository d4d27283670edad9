package memstore_test

import (
	"testing"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/castest/memstore"
)

func TestStore(t *testing.T) {
	t.Parallel()
	for _, a := range []cas.Algorithm{cas.XXH3, cas.XXH64} {
		t.Run(string(a), func(t *testing.T) {
			t.Parallel()
			castest.TestStore(t, func(*testing.T) cas.Store { return memstore.New(a) })
		})
	}
}
