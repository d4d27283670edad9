// Package foreign starts a fake endpoint that others have written, for the tests
// of `make test-endpoint`. Without the build tag endpoint there is nothing in it:
// npm and a network are needed for the rest.
package foreign
