"""The Python frameworks, each started in a process of its own: loads, acts when told to, closes when its input ends."""

import asyncio
import json
import os
import sys

options = json.loads(os.environ["EVAL_CASE"])
text = {
    "name": "Maria Lindqvist",
    "email": "maria.lindqvist@example.org",
    "message": "Please call me back on Monday.",
}
chromium, url, folder = options["chromium"], options["url"], options["folder"]


def told_to_act() -> bool:
    return sys.stdin.readline().strip() == "act"


def wait_for_end() -> None:
    sys.stdin.read()


async def in_thread(work):
    return await asyncio.get_running_loop().run_in_executor(None, work)


def act_by_selenium(driver) -> None:
    from selenium.webdriver.common.by import By

    for name, words in text.items():
        driver.find_element(By.ID, name).click()
        driver.find_element(By.ID, name).send_keys(words)
    driver.find_element(By.ID, "terms").click()
    driver.find_element(By.CSS_SELECTOR, "option[value=help]").click()
    driver.find_element(By.ID, "send").click()


def drive_by_selenium(driver) -> None:
    driver.get(url)
    if told_to_act():
        act_by_selenium(driver)
    wait_for_end()
    driver.quit()


def undetected_chromedriver() -> None:
    import undetected_chromedriver as uc

    chosen = uc.ChromeOptions()
    chosen.add_argument("--no-sandbox")
    drive_by_selenium(
        uc.Chrome(
            options=chosen,
            user_data_dir=folder,
            browser_executable_path=chromium,
            driver_executable_path=options["patchable_driver"],
        )
    )


def seleniumbase_uc() -> None:
    import shutil

    import seleniumbase
    from seleniumbase import Driver

    # It looks for its driver in a folder of its own, and has no other way to be given one.
    drivers = os.path.join(os.path.dirname(seleniumbase.__file__), "drivers")
    for name in ("chromedriver", "uc_driver"):
        shutil.copy(options["chromedriver"], os.path.join(drivers, name))
    driver = Driver(uc=True, binary_location=chromium, headless=False, no_sandbox=True, user_data_dir=folder)
    driver.uc_open_with_reconnect(url, 4)
    if told_to_act():
        act_by_selenium(driver)
    wait_for_end()
    driver.quit()


def drissionpage() -> None:
    from DrissionPage import Chromium, ChromiumOptions

    chosen = ChromiumOptions(read_file=False).set_browser_path(chromium).set_user_data_path(folder)
    chosen.set_argument("--no-sandbox").auto_port()
    browser = Chromium(chosen)
    tab = browser.latest_tab
    tab.get(url)
    if told_to_act():
        for name, words in text.items():
            tab.ele(f"#{name}").click()
            tab.ele(f"#{name}").input(words)
        tab.ele("#terms").click()
        tab.ele("#topic").select.by_value("help")
        tab.ele("#send").click()
    wait_for_end()
    browser.quit()


async def drive_tab(browser, tab) -> None:
    """nodriver and its successor zendriver have the same words."""
    if await in_thread(told_to_act):
        for name, words in text.items():
            element = await tab.select(f"#{name}")
            await element.mouse_click()
            await element.send_keys(words)
        await (await tab.select("#terms")).mouse_click()
        await (await tab.select("option[value=help]")).select_option()
        await (await tab.select("#send")).mouse_click()
    await in_thread(wait_for_end)
    stopped = browser.stop()
    if asyncio.iscoroutine(stopped):
        await stopped


async def nodriver() -> None:
    import nodriver as framework

    browser = await framework.start(
        browser_executable_path=chromium, user_data_dir=folder, sandbox=False, headless=False
    )
    await drive_tab(browser, await browser.get(url))


async def zendriver() -> None:
    import zendriver as framework

    browser = await framework.start(
        browser_executable_path=chromium, user_data_dir=folder, sandbox=False, headless=False
    )
    await drive_tab(browser, await browser.get(url))


async def pydoll() -> None:
    from pydoll.browser.chromium import Chrome
    from pydoll.browser.options import ChromiumOptions

    chosen = ChromiumOptions()
    chosen.binary_location = chromium
    for flag in ("--no-sandbox", f"--user-data-dir={folder}"):
        chosen.add_argument(flag)
    browser = Chrome(options=chosen)
    tab = await browser.start()
    await tab.go_to(url)
    if await in_thread(told_to_act):
        for name, words in text.items():
            element = await tab.find(id=name)
            await element.click()
            await element.type_text(words)
        await (await tab.find(id="terms")).click()
        await (await tab.find(id="send")).click()
    await in_thread(wait_for_end)
    await browser.stop()


async def selenium_driverless() -> None:
    from selenium_driverless import webdriver
    from selenium_driverless.types.by import By

    chosen = webdriver.ChromeOptions()
    chosen.binary_location = chromium
    chosen.add_argument("--no-sandbox")
    chosen.user_data_dir = folder
    async with webdriver.Chrome(options=chosen) as driver:
        await driver.get(url)
        if await in_thread(told_to_act):
            for name, words in text.items():
                element = await driver.find_element(By.ID, name)
                await element.click()
                await element.send_keys(words)
            await (await driver.find_element(By.ID, "terms")).click()
            await (await driver.find_element(By.ID, "send")).click()
        await in_thread(wait_for_end)


frameworks = {
    "undetected-chromedriver": undetected_chromedriver,
    "seleniumbase": seleniumbase_uc,
    "DrissionPage": drissionpage,
    "nodriver": nodriver,
    "zendriver": zendriver,
    "pydoll-python": pydoll,
    "selenium-driverless": selenium_driverless,
}

if __name__ == "__main__":
    chosen = frameworks[options["package"]]
    asyncio.run(chosen()) if asyncio.iscoroutinefunction(chosen) else chosen()
