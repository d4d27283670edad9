package fetch

import (
	"fmt"
	"net/netip"
	"syscall"

	"github.com/united-workforce/uwf/utilagent/internal/publicaddr"
)

// errPrivate is for an address that is not public.
type errPrivate struct{ addr netip.Addr }

func (e errPrivate) Error() string {
	return fmt.Sprintf("%s is not an address of the public internet, and only such may be fetched here. Use another URL, or say in your answer what should be looked up", e.addr)
}

// onlyPublic is for net.Dialer.Control: it sees the address that is really
// dialled, whatever a name has resolved to before, for every redirect and every
// address of a name.
func (f Options) onlyPublic(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	public := publicaddr.Is
	if f.public != nil {
		public = f.public
	}
	if !public(ap.Addr()) || publicaddr.IsOwn(ap.Addr()) {
		return errPrivate{ap.Addr()}
	}
	return nil
}
