// Pictures takes screenshots of the console's pages, from the service that `make run` started.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// timeout bounds the whole run.
const timeout = 5 * time.Minute

// quality of a picture: text stays sharp, and a page takes about 40 kB.
var quality int64 = 45

// view is a page and the keys to press on it.
type view struct{ name, path, keys, until string }

var views = []view{
	{"overview", "/console/", "", "main"},
	{"findings", "/console/findings", "", ".row"},
	{"finding", "/console/findings", "jjjjjjjj" + kb.Enter, "#panel .timeline"},
	{"selection", "/console/findings?severity=high", "jxjxjx", ".selection.used"},
	{"mute", "/console/findings", "jm", "#decision[open]"},
	{"reviews", "/console/reviews", "", "main"},
	{"scans", "/console/scans", "", "main"},
	{"webhooks", "/console/deliveries", "", "main"},
	{"operations", "/console/operations", "", "main"},
	{"groups", "/console/findings?group=rule", "", ".group"},
	{"policies", "/console/policies", "", "main"},
	{"rule", "/console/policies/_new?rule=G104", "", "#match"},
	{"keys", "/console/keys", "", "main"},
}

func main() {
	out := flag.String("out", "pictures", "folder that the pictures are written into")
	only := flag.Bool("readme", false, "only those of the README: 1280 pixels wide, alternating light and dark")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), "Usage: pictures [-out FOLDER] [-readme]\n\n"+ //nolint:errcheck // for people
			"Takes pictures of the console with Chromium. Start `make run` and source .run/env first.\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if err := run(*out, *only); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func run(out string, readme bool) error {
	base, key := os.Getenv("FINDINGS_URL"), os.Getenv("FINDINGS_API_KEY")
	if base == "" || key == "" {
		return errors.New("FINDINGS_URL and FINDINGS_API_KEY are not set: start `make run`, then `source .run/env`")
	}
	if err := os.MkdirAll(out, 0o750); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	ctx, cancel = chromedp.NewExecAllocator(ctx, append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox)...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	if err := chromedp.Do(ctx, chromedp.Navigate(base+"/console/login"), chromedp.SendKeys("#key", key), chromedp.Submit("#key"),
		chromedp.WaitVisible(".account")); err != nil {
		return fmt.Errorf("log in: %w", err)
	}
	if readme {
		for i, v := range views[:4] {
			if err := take(ctx, base, v, []string{"light", "dark"}[i%2], 1280, filepath.Join(out, v.name+".webp")); err != nil {
				return err
			}
		}
		return nil
	}
	for _, v := range views {
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{390, 1280, 1920} {
				file := filepath.Join(out, fmt.Sprintf("%s-%s-%d.webp", v.name, scheme, width))
				if err := take(ctx, base, v, scheme, width, file); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func take(ctx context.Context, base string, v view, scheme string, width int64, file string) error {
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	}); err != nil {
		return err
	}
	steps := []chromedp.Action[chromedp.Void]{
		chromedp.EmulateViewport(width, width*5/8+200), chromedp.Navigate(base + v.path), chromedp.WaitReady("main"),
	}
	for _, key := range strings.Split(v.keys, "") {
		// The page handles a key with the next frame.
		steps = append(steps, chromedp.KeyEvent(key), frame)
	}
	if err := chromedp.Do(ctx, append(steps, chromedp.WaitVisible(v.until))...); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	picture, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{
		Format: page.CaptureScreenshotFormatWebp, Quality: &quality,
	})
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	fmt.Println(file) //nolint:forbidigo // for users
	return os.WriteFile(file, picture.Data, 0o600)
}

// frame waits until the browser has drawn the next frame.
func frame(ctx context.Context, t *chromedp.Target) (chromedp.Void, error) {
	_, err := chromedp.Evaluate[bool]("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))",
		chromedp.EvalAwaitPromise)(ctx, t)
	return chromedp.Void{}, err
}
