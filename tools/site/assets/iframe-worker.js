// Search in pages that are opened as files: a browser starts no worker there, so its script runs in a hidden frame.
// What Material's search needs of a worker: messages in both directions, and importScripts for its languages.
if (location.protocol === 'file:') {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement('iframe');
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      const inside = this.frame.contentWindow;
      inside.document.open();
      inside.document.write('<!doctype html><script></' + 'script>');
      inside.document.close();
      inside.postMessage = (data) =>
        setTimeout(() => this.dispatchEvent(new MessageEvent('message', {data})));
      const load = (source) =>
        new Promise((resolve, reject) => {
          const script = inside.document.createElement('script');
          script.src = source;
          script.onload = resolve;
          script.onerror = () => reject(new Error('cannot load ' + source));
          inside.document.head.appendChild(script);
        });
      inside.importScripts = (...sources) =>
        sources.reduce((before, source) => before.then(() => load(source)), Promise.resolve());
      this.ready = load(String(url)).catch((error) => {
        this.dispatchEvent(new ErrorEvent('error', {message: error.message}));
      });
    }
    set onmessage(listener) {
      this.addEventListener('message', listener);
    }
    set onerror(listener) {
      this.addEventListener('error', listener);
    }
    postMessage(data) {
      this.ready.then(() =>
        this.frame.contentWindow.dispatchEvent(new MessageEvent('message', {data})));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
