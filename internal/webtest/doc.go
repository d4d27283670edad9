// Package webtest tests the pages of uwf web in Chromium, with the built commands: every page, every action,
// use with the mouse and with the keyboard alone, a running step, behind a proxy, without scripts, on a
// narrow screen, as another user of the machine, and without browser warnings. `make test-web` runs it and
// saves screenshots in .tmp/web; `make test` does not, because it may have no browser.
package webtest
