import type { Behavior, Snapshot } from './observations.ts'

type Meanings<Groups> = {
  [G in keyof Groups]: { [Member in keyof NonNullable<Groups[G]>]: string }
}

// Meaning of each observation in the docs: its unit, and the source in a browser. Other clients send the closest
// equivalent or omit the member.

const realm = {
  available: 'true if the context could be read',
  user_agent: '`navigator.userAgent` in the context',
  platform: '`navigator.platform` in the context',
  languages: '`navigator.languages` in the context',
  hardware_concurrency: '`navigator.hardwareConcurrency` in the context, number of processors',
  webgl_renderer: 'like `webgl.renderer`, from a WebGL context created in the context',
}

export const snapshotMeanings: Meanings<Snapshot> = {
  collection: {
    mode: '`full` (the default), or `minimal` if the page chose [minimal mode](../guide/privacy.md#minimal-mode)',
    withheld:
      'absent parts (`worker`, `iframe`, `webgl`, `canvas`, `fonts`, `audio`) with the reason: `blocked` (refused or failed), `unsupported` (no such API), `late` (not ready in time)',
  },
  navigator: {
    user_agent: '`navigator.userAgent`',
    app_version: '`navigator.appVersion`',
    platform: '`navigator.platform`',
    vendor: '`navigator.vendor`',
    product_sub: '`navigator.productSub`',
    language: '`navigator.language`, a BCP 47 tag',
    languages: '`navigator.languages`, preferred language first',
    hardware_concurrency: '`navigator.hardwareConcurrency`, number of processors',
    device_memory: '`navigator.deviceMemory`, GiB',
    max_touch_points: '`navigator.maxTouchPoints`, simultaneous touches',
    pdf_viewer_enabled: '`navigator.pdfViewerEnabled`',
    cookie_enabled: '`navigator.cookieEnabled`',
    mime_types_count: '`navigator.mimeTypes.length`',
    plugins: '`name` of each entry in `navigator.plugins`',
    plugins_genuine:
      'true if plugins and MIME types have their own prototypes and refer to each other',
    connection_rtt: '`navigator.connection.rtt`, milliseconds',
    brands: '`navigator.userAgentData.brands`',
    ua_data_platform: '`navigator.userAgentData.platform`',
    ua_data_platform_version: '`platformVersion` of `getHighEntropyValues`',
    ua_data_architecture: '`architecture` of `getHighEntropyValues`',
    ua_data_model: '`model` of `getHighEntropyValues`',
    ua_data_mobile: '`navigator.userAgentData.mobile`',
    ua_full_version:
      'version in `fullVersionList` of `getHighEntropyValues`, preferably of the product rather than Chromium',
  },
  environment: {
    outer_width: '`window.outerWidth`, CSS pixels',
    outer_height: '`window.outerHeight`, CSS pixels',
    inner_width: '`window.innerWidth`, CSS pixels',
    inner_height: '`window.innerHeight`, CSS pixels',
    screen_width: '`screen.width`, CSS pixels',
    screen_height: '`screen.height`, CSS pixels',
    avail_width: '`screen.availWidth`, CSS pixels',
    avail_height: '`screen.availHeight`, CSS pixels',
    color_depth: '`screen.colorDepth`, bits',
    pixel_ratio: '`devicePixelRatio`, device pixels per CSS pixel',
    orientation_type: '`screen.orientation.type`',
    has_focus: '`document.hasFocus()`',
    secure_context: '`isSecureContext`',
    timezone: '`timeZone` of `Intl.DateTimeFormat().resolvedOptions()`, an IANA name',
    timezone_offset_min: '`new Date().getTimezoneOffset()`, minutes; negative east of Greenwich',
    pointer_coarse: 'true if `(pointer: coarse)` matches',
    pointing_device:
      'true unless `(any-pointer: none)` matches: there is a mouse, touchpad, pen or touch screen',
    has_chrome_object: "`'chrome' in window`",
    notification_permission: '`Notification.permission`',
    permissions_query_state: '`state` of `navigator.permissions.query` for `notifications`',
  },
  automation: {
    webdriver: '`navigator.webdriver`',
    webdriver_iframe: '`navigator.webdriver` in an empty iframe of the page',
    webdriver_worker:
      '`navigator.webdriver` in a worker; null if unreadable, which is not evidence',
    webdriver_own_property:
      'true if `navigator` itself, not only its prototype, has a property `webdriver`',
    globals:
      'names that drivers leave in `window` or `document`, and ChromeDriver markers (`cdc_..._Array`)',
    document_attributes: 'attributes of the root element named `selenium`, `webdriver` or `driver`',
    cdp_runtime:
      'true if `console_readers` is not empty: developer tools or a driver are connected',
    console_readers:
      'ways in which a logged error was read: `stack` (the stack was formatted) or `getter` (a getter was called), for a worker as `worker.stack`',
    sequentum: 'true if `window.external` names Sequentum',
    electron: 'true if `process` or the user agent names Electron',
  },
  tamper: {
    examined: 'number of functions and primitives examined for the next two lists',
    patched_functions: 'examined built-in functions and getters whose source is not native',
    foreign_primitives:
      'examined primitives that are not native, such as `JSON.stringify`, `frame.JSON.stringify` (in a fresh frame) and `worker.navigator.platform` (in a worker)',
    realm_differences:
      'values in a fresh frame or a worker that differ from the page, such as `frame.userAgent` and `worker.languages`',
    realm_available: 'true if a fresh frame could be opened to get unmodified primitives',
    navigator_own_properties:
      '`Object.getOwnPropertyNames(navigator)`; empty in an unmodified browser',
    iframe_srcdoc_proxy:
      'true if a frame outside the document has a window, which only a fake one has',
    chrome_runtime_faked:
      'true if `chrome.runtime.sendMessage` or `connect` is fake; null without `window.chrome`',
    webgl_parameter_mismatch:
      'true if WebGL and WebGL 2 differ in the renderer or in shared limits',
    timezone_mismatch:
      'true if the local time in `environment.timezone` contradicts `getTimezoneOffset()`',
    brave: 'true if `navigator.brave` exists',
    timer_precision_reduced:
      'true if `performance.now()` advances in steps of 5 milliseconds or more; null if no step was observed',
  },
  engine: {
    eval_length: 'length of the source text of `eval`, characters',
    null_property_message: 'error message when a property of `null` is read',
    name: '`V8`, `SpiderMonkey` or `JavaScriptCore`, according to that message',
  },
  worker: realm,
  iframe: realm,
  storage: {
    cookies: 'true if a cookie can be set and read',
    local_storage: 'true if `localStorage` can be written and read',
    session_storage: 'true if `sessionStorage` can be written and read',
    indexed_db: 'true if a database can be opened',
    service_worker: "`'serviceWorker' in navigator`",
    window_name: 'true if `window.name` is a string',
  },
  capabilities: {
    touch: 'true if there is `ontouchstart` or a touch point',
    webgpu: "`'gpu' in navigator`",
    platform_authenticator: '`PublicKeyCredential.isUserVerifyingPlatformAuthenticatorAvailable()`',
    conditional_mediation: '`PublicKeyCredential.isConditionalMediationAvailable()`',
    media_devices: "`'mediaDevices' in navigator`",
    speech_synthesis: "`'speechSynthesis' in window`",
  },
  canvas: {
    hash: 'hash of the next two hashes',
    geometry_hash: 'hash of the pixels of overlapping circles on a canvas of 122 by 110',
    text_hash: 'hash of the pixels of two lines of text with an emoji on a canvas of 240 by 60',
    winding: 'true if the fill rule `evenodd` leaves a hole in a path',
    noise_detected: 'true if a filled square or an empty canvas reads back differently',
    offscreen_consistent: 'true if the same circles on an `OffscreenCanvas` have the same pixels',
  },
  webgl: {
    vendor: '`UNMASKED_VENDOR_WEBGL`, or `VENDOR`',
    renderer: '`UNMASKED_RENDERER_WEBGL`, or `RENDERER`',
    version: '`VERSION`',
    shading_language_version: '`SHADING_LANGUAGE_VERSION`',
    parameters_hash: 'hash of the limits and capabilities from `getParameter`, with their names',
    extensions_hash: 'hash of `getSupportedExtensions()`, in its order',
    extension_parameters_hash: 'hash of the same for all extensions',
    shader_precision_hash: 'hash of the range and precision of each number type in both shaders',
  },
  webgpu: {
    available: 'true if `navigator.gpu.requestAdapter()` returns an adapter',
    adapter_vendor: '`vendor` of the adapter',
    adapter_architecture: '`architecture` of the adapter',
    fallback_adapter: '`isFallbackAdapter`, a software adapter',
    features_hash: "hash of the adapter's features, sorted",
    limits_hash: "hash of the adapter's limits with their names, sorted",
  },
  audio: {
    hash: 'hash of the samples of a triangle wave that an `OfflineAudioContext` sends through a compressor; nothing is played',
    sample_rate: 'sample rate of that context, hertz',
    channel_count: 'number of channels of that context',
    voice_count: 'number of voices in `speechSynthesis.getVoices()`',
    local_voice_count: 'number of those voices that need no network (`localService`)',
    default_voice_lang: 'language of the default voice, a BCP 47 tag',
    noise_detected: 'true if reading the samples in two ways returns different values',
  },
  fonts: {
    detected_count: 'number of tested fonts that are installed',
    tested_count: 'number of tested fonts',
    detected:
      'names of the tested fonts that are installed: text has a different width than in a generic font',
    enumeration_hash: 'hash of these names',
    metrics_hash: 'hash of the width, ascent and descent of a text in the generic fonts',
    preferences_hash:
      'hash of the system fonts, such as `caption` and `menu`, with size and weight',
    emoji_hash: 'hash of the pixels of two emoji',
  },
  media: {
    device_count: 'number of devices in `navigator.mediaDevices.enumerateDevices()`',
    counts_by_kind: 'number of devices by `kind`, such as `audioinput`',
    blank_label_count: 'number of devices with an empty label; all of them, without permission',
    topology_hash: 'hash of the kind of each device and the presence of a group, in order',
  },
  proofs: {
    challenge:
      '`challenge` of the open response, unchanged; sent by SDKs before 0.2 instead of `answer_mac`',
    timing_nonce:
      '`timingNonce` of the open response, unchanged; sent by SDKs before 0.2 instead of `answer_mac`',
    canvas_challenge_hash:
      'hash of the pixels of `canvasChallenge`, [drawn](collect-protocol.md#7-challenges) as instructed',
    engine_answers: 'answers to `engineQuestions` of the open response, in their order',
    answer_mac:
      'MAC of these answers, [keyed](collect-protocol.md#7-challenges) by `challenge` and `timingNonce`',
  },
  native: {
    device_model: 'device model as named by the system, such as `iPhone15,2`',
    os_name: 'name of the operating system, such as `iOS`',
    os_version: 'version of the operating system',
    architecture: 'processor architecture, such as `arm64`',
    install_id: 'random id that the app generated at installation',
    bundle_id: 'bundle identifier or package name of the app',
    app_version: 'version of the app that users see',
    app_build: 'build number of the app',
    carrier_name: 'name of the mobile network operator',
    country_iso: 'country of the mobile network operator, two letters',
    install_time_epoch_ms: 'time of installation, epoch milliseconds',
    provisioning_team: 'id of the team that signed the app (Apple only)',
    mcc: 'country code of the mobile network, three digits',
    mnc: 'network code within the country',
    phone_type: 'phone type, such as `gsm`',
    network_type: 'connection type, such as `wifi`',
    radio_access: 'radio technologies in use, such as `lte`',
    jailbreak_or_root: 'true if the device is jailbroken or rooted',
    hooks: 'true if code in the process was replaced, for example by Frida',
    debugger: 'true if a debugger is attached',
    simulator_or_emulator: 'true if the app runs in a simulator or emulator',
    code_signing_invalid: 'true if the app was changed after it was signed',
    integrity: 'evidence for these flags, in groups (below)',
    motion: 'sensor readings of the device at rest (below)',
  },
}

/** Members that every group of `behavior` has. */
export const timing = {
  untrusted: 'events created by a script (`isTrusted` is false)',
  duration_ms: 'time from the first event to the last, milliseconds',
  interval_mean: 'mean time between events, milliseconds',
  interval_std: 'sample standard deviation of that time, milliseconds',
}

const channel = (events: string) => ({ events, ...timing })

export const behaviorMeanings: Meanings<Behavior> = {
  mouse: {
    ...channel('`pointermove` events, and `click` events by a pointer, except touches'),
    moves: '`pointermove` events',
    clicks: '`click` events by a pointer, not by a key, a label or assistive technology',
    activations: 'genuine clicks by any means: pointer, finger, key, label or screen reader',
    clicks_without_move:
      'genuine clicks more than 3 CSS pixels from the last known position, or without a known position',
    clicks_exact_center:
      'clicks within 0.75 CSS pixels of the center of the clicked element, in both directions',
    screen_equals_client:
      'genuine moves whose screen position equals the position in the page, although the window has an offset or a bar',
    frameless:
      'genuine moves whose screen position leaves no room for the bars that the window has',
    coalesced: 'genuine moves that the browser coalesced from several (`getCoalescedEvents`)',
    single: 'genuine moves that the browser reports as not coalesced',
    off_clock:
      'genuine moves, presses and releases whose `timeStamp` is not a whole number of milliseconds after the previous one',
    presses:
      'genuine mouse button presses: `mousedown` after `pointerdown`, not by assistive technology',
    instant_presses: 'presses released within 8 milliseconds',
    pressureless: 'genuine mouse presses and moves with a button down and a `pressure` of 0',
    jumps:
      'presses after a single genuine move of more than 200 CSS pixels, within the page and with focus; late and coalesced moves do not count',
    straightness:
      'path length divided by distance, 1 for a straight line; mean over movements. A movement ends with a click or a pause of 120 milliseconds, and needs at least 4 points and 30 CSS pixels',
    speed_std: 'standard deviation of the speed between moves, CSS pixels per millisecond',
  },
  keyboard: {
    ...channel('`keydown`, without repeats'),
    keys: 'pressed keys',
    hold_mean: 'mean time that a key is held, milliseconds',
    hold_std: 'standard deviation of that time, milliseconds',
    rollovers: 'character keys pressed while another character key was down',
    corrections: 'presses of Backspace and Delete',
    shiftless:
      'genuine capitals without Shift or Caps Lock next to a lower-case letter, and `@` from the key `Digit2` without a modifier',
    malformed:
      'genuine keys whose `keyCode` or `location` is 0, although their `code` implies another value',
    unkeyed: 'genuine `keypress` events with no `keydown` since the previous one',
    off_clock:
      'genuine key presses and releases whose `timeStamp` is not a whole number of milliseconds after the previous one',
    abutting:
      'character keys pressed within 8 milliseconds of the previous release, with no other key down',
    hasty: 'genuine character keys within 60 milliseconds of a mouse button release',
    letters: 'genuine a-z keys with a real `keyCode`, which on-screen keyboards do not send',
  },
  touch: {
    ...channel('`touchstart`, `touchmove`, `touchend`'),
    touches: '`touchstart` events',
    radius_std: 'standard deviation of `radiusX` of the contacts, CSS pixels',
    instant: 'genuine contacts that ended within 8 milliseconds',
    plain: 'genuine contacts that begin with both radii and the force at 1, at any zoom',
    displaced:
      'genuine contacts that begin 4 or more CSS pixels off their position in the page, although the window is as wide as the screen',
  },
  scroll: {
    ...channel('`wheel` and `scroll`'),
    wheel: '`wheel` events',
    distance: 'distance scrolled, up and down together, CSS pixels',
    uneven_wheel:
      'genuine wheel turns by whole notches whose distance per notch differs from the previous turn',
    uncaused:
      'times that scrolling began with no input, focus change or resize in the preceding second',
  },
  form: {
    ...channel('`focusin`, `input` of text fields, `change`, `submit`'),
    focuses: 'times that a field got the focus',
    changes: '`change` events',
    submits: '`submit` events',
    silent_changes:
      'inputs to a text field with no key, paste, drop or composition in the preceding second, and not by a menu or autofill',
    inserted: 'silent changes that are genuine and insert two or more characters at once',
    autofills: "inputs by the browser's own autofill",
    uncaused_focuses:
      'times that a field got the focus with no genuine input or return to the window in the preceding second',
    unfocused_inputs:
      "inputs to a text field without the focus, except by the browser's own autofill",
    time_to_submit_ms:
      'time from the first focus in the form (or the start of the document) to its last `submit`, milliseconds',
  },
  clipboard: {
    ...channel('`copy`, `cut` and `paste`'),
    copies: '`copy` and `cut` events',
    pastes: '`paste` events',
  },
}
